"""Runs over sums in one turn: a real player and environment, and an engine whose answers a function draws."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scripted_engine import ScriptedEngine, scripted
from small_run import collector

from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.env.turn_result import Ended
from rstar2_env.rollout import Budget, Generation, Player, SamplingParams
from rstar2_env.trainers.samplers.uniform import Uniform
from rstar2_env.trainers.step.collector import Collector

SUMS = [
    {
        "id": f"s{n}",
        "question": f"What is {n} + 7?",
        "answer": str(n + 7),
        "rubric": [{"criterion": f"Point {k}.", "points": 1.0 + k} for k in range(4)],
    }
    for n in range(8)
]
Says = Callable[[str, np.random.Generator], str]
"""The prompt, and the draws of the turn, to what the policy says."""


class Sums(ToolEnv):
    """One turn; the reward is 1 where its last word is the sum."""

    def __init__(self, *, split: str = "train") -> None:
        super().__init__(problems=SUMS, tools=[], grader=None, dialect_options={"system": "", "instruction": ""})

    def answer_turn(self, turn: str) -> Ended:
        """Grade it."""
        given = (turn.split() or [""])[-1]
        right = given == self.problem.answer
        return Ended(given, float(right), right)


@dataclass
class DrawnEngine(ScriptedEngine):
    """Draws what it says with the seed of the turn.

    Attributes:
        says: What it says.
        prompts: Every prompt, as text.
    """

    says: Says = lambda prompt, rng: "?"
    prompts: list[str] = field(default_factory=list)

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Say it."""
        prompt = str(self.codec.tokenizer.decode(ids))
        self.prompts.append(prompt)
        await asyncio.sleep(0)
        text = self.says(prompt, np.random.default_rng(params.seed)) + self.end
        said = self.codec.tokenizer.encode(text, add_special_tokens=False)[: params.max_tokens]
        return Generation(said, [-0.5] * len(said), "stop" if said[-1] in params.stop_ids else "length", 0)


def player_of(says: Says) -> Player:
    """A player of sums whose policy says this."""
    engine = DrawnEngine(scripted(lambda text: "").codec, lambda text: "", says=says)
    return Player(Sums, engine, engine.codec, sampling=SamplingParams(1), budget=Budget(tokens=400))


def collector_of(rollout: Any, says: Says, **options: Any) -> Collector:
    """A collector of 2 groups of 4 sums, played by this part."""
    chosen = {"problems_per_step": 2, "sampler": Uniform([one["id"] for one in SUMS], 0), "problems": Sums().problems}
    return collector(player_of(says), rollout=rollout, **{**chosen, **options})  # type: ignore[arg-type]


def text_of(collected: Collector, ids: Sequence[int]) -> str:
    """Ids as text."""
    return str(collected.player.chat.tokenizer.decode(list(ids)))  # type: ignore[attr-defined]
