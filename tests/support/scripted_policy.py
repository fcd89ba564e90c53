"""An engine whose turns are written by a script, with the log-probabilities that the trained model gives them.

A tiny model with random weights never calls a tool, solves a puzzle or makes a legal move; a run of it would train on
nothing. Here the environment, its rewards, the tool's programs, the collector and the optimizer are the real ones, and
the script plays badly enough that the episodes of a group differ. Not covered: learning, since the script does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scripted_engine import call

from rstar2_env.core.options.declare import checked
from rstar2_env.rollout import Generation, SamplingParams
from rstar2_env.rollout.engines.registry import EngineKind
from rstar2_env.rollout.engines.transformers_engine import TransformersEngine

Script = Callable[[str, np.random.Generator], str | None]
"""The conversation so far and the turn's draws, to the turn; ``None`` where it does not know the conversation."""


class ScriptedPolicy(TransformersEngine):
    """The trainer's own module, which is told what to say; what the script does not know it samples."""

    def __init__(self, model: Any, tokenizer: Any, script: Script, **options: Any) -> None:
        super().__init__(model, tokenizer, **options)
        self._script = script

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Say what the script says, and end the turn."""
        text = self._script(str(self.tokenizer.decode(ids)), np.random.default_rng(params.seed))
        if text is None:
            return await super().generate(ids, params)
        said = self.tokenizer.encode(f"{text}<|im_end|>", add_special_tokens=False)[: params.max_tokens]
        version = self._version
        logprobs = await self.score(ids, said)
        return Generation(said, logprobs, "stop" if said[-1] in params.stop_ids else "length", version)


def engine_kind(script: Script) -> EngineKind:
    """A kind of engine that can be registered."""

    def make(model: Any, tokenizer: Any, *, max_rows: int, seed: int, options: Mapping[str, Any]) -> ScriptedPolicy:
        return ScriptedPolicy(model, tokenizer, script, max_rows=max_rows, seed=seed)

    @checked
    def takes() -> None: ...

    return EngineKind("what a script says", make, shares_weights=True, takes=lambda: takes)


@dataclass(frozen=True)
class World:
    """An environment, and a script that plays it.

    Attributes:
        env: Its id.
        options: Its options.
        script: Who plays.
        tokens: The longest episode.
    """

    env: str
    options: Mapping[str, Any]
    script: Script
    tokens: int


def _calculator(text: str, rng: np.random.Generator) -> str | None:
    asked = re.search(r"What is (\d+) \+ (\d+)\?", text)
    if asked is None:
        return None
    total = int(asked[1]) + int(asked[2])
    if "<tool_response>\n" not in text and rng.random() < 0.6:
        calls = [call(f"print({asked[1]}+{asked[2]})"), call("print(undefined)"), "<tool_call>{</tool_call>"]
        return calls[rng.choice(3, p=[0.5, 0.3, 0.2])]
    return f"<answer>\\boxed{{{total + (rng.random() < 0.5)}}}</answer>"


def _guesser(text: str, rng: np.random.Generator) -> str | None:
    if "Answer with 5 digits" not in text:
        return None
    return f"<answer>\\boxed{{{''.join(map(str, rng.integers(2, size=5)))}}}</answer>"


def _player(text: str, rng: np.random.Generator) -> str | None:
    legal = re.findall(r"You can play: ([\d, ]+)", text)
    return f"<answer>\\boxed{{{rng.choice(legal[-1].split(', '))}}}</answer>" if legal else None


_KINDS = ("even", "odd")

WORLDS = {
    "tool": World(
        "rstar2/MathTool-v0",
        {
            "problems": [
                {
                    "question": f"What is {n} + {n * n}?",
                    "answer": str(n + n * n),
                    "source": _KINDS[n % 2],
                    "level": n % 3,
                }
                for n in range(12)
            ],
            "max_turns": 3,
        },
        _calculator,
        700,
    ),
    "puzzle": World(
        "rstar2/Saturn-v0", {"problems": {"mix": [{"spec": f"saturn:clauses={n}"} for n in (5, 6)]}}, _guesser, 100
    ),
    "game": World("rstar2/TicTacToe-v0", {}, _player, 1500),
}
"""Mathematics with a tool, a puzzle of one turn, and a game of several against an opponent.

The problems of the first two are of two kinds, for samplers that choose between kinds; the game has one.
"""


def _patcher(text: str, rng: np.random.Generator) -> str:
    head = "patch" if rng.random() < 0.2 else "### a.py"
    return f"{head}\n<<<<<<< SEARCH\nwidth = 1\n=======\nwidth = {rng.integers(2, 40)}\n>>>>>>> REPLACE"


def _chooser(text: str, rng: np.random.Generator) -> str:
    return f"The answer is ({rng.choice(['A', 'B', 'C'])})."


def _mixed(text: str, rng: np.random.Generator) -> str | None:
    return _calculator(text, rng) or _guesser(text, rng)


FOR_RECIPES = {
    "alphamed": World(
        "rstar2/MathTool-v0",
        {"problems": [{"question": f"Letter {n} of ABC?", "answer": "ABC"[n]} for n in range(3)], "max_turns": 3},
        _chooser,
        400,
    ),
    "guru": World(
        "rstar2/Mixture-v0",
        {
            "sources": {
                "math": {"id": WORLDS["tool"].env, "options": dict(WORLDS["tool"].options)},
                "logic": {"id": WORLDS["puzzle"].env, "options": dict(WORLDS["puzzle"].options)},
            }
        },
        _mixed,
        700,
    ),
    "swe_rl": World(
        "rstar2/MathTool-v0",
        {
            "problems": [
                {
                    "question": f"The width in a.py should be {n}.",
                    "answer": f"+++ b/a.py\n-width = 1\n+width = {n}\n",
                    "files": {"a.py": "width = 1\n"},
                }
                for n in range(2, 8)
            ],
            "max_turns": 3,
        },
        _patcher,
        500,
    ),
}
"""Worlds of the recipes whose rewards fit none of the others: questions with letters, a mixture, files to mend."""
