"""What a rollout part plays with, over a real player: a policy that draws words, in an environment that shows them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scripted_engine import EchoEnv, echo_player, scripted, turns_of

from rstar2_env.rollout import Generation, SamplingParams
from rstar2_env.trainers.samplers.base import Start
from rstar2_env.trainers.step.group_play import GroupPlay

WORDS = ("red", "blue", "green")


@dataclass
class Words:
    """An engine that draws a few words a turn, and ends an episode after some turns.

    Attributes:
        turns: Turns after which it says "stop".
        least: Turns before which it never does.
        spread: Of the number of a turn, the entropy that its candidates have together.
        delay_s: How long a turn takes, by its draws.
        asked: Number of requests.
        most_candidates: See ``ReportsCandidates``.
    """

    turns: int = 4
    least: int = 1
    spread: Callable[[int], float] = lambda turn: 0.5
    delay_s: Callable[[np.random.Generator], float] = lambda rng: 0.0
    asked: int = 0
    most_candidates: int = 20
    codec: Any = field(default_factory=lambda: scripted(lambda text: "").codec)

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        self.asked += 1
        rng = np.random.default_rng(params.seed)
        await asyncio.sleep(self.delay_s(np.random.default_rng(params.seed)))
        tokenizer = self.codec.tokenizer
        turn = turns_of(str(tokenizer.decode(ids)))
        stops = turn + 1 >= self.turns or (turn >= self.least and rng.random() < 0.2)
        words = [str(word) for word in rng.choice(WORDS, size=3)] + ["stop"] * bool(stops)
        said = tokenizer.encode(" ".join(words) + "<|im_end|>", add_special_tokens=False)[: params.max_tokens]
        candidates = [half(self.spread(turn))] if params.candidates else []
        ended = "stop" if said[-1] in params.stop_ids else "length"
        return Generation(said, [float(-rng.random()) for _ in said], ended, 0, candidates)  # type: ignore[arg-type]

    def update_weights(self, version: int, weights: Any = None) -> None: ...

    def capacity(self) -> int:
        return 1 << 20

    def close(self) -> None: ...


def half(entropy: float) -> list[float]:
    """Two equal probabilities whose -p ln p come to this together; at most 2 / e."""
    low, high = 1e-9, 1 / math.e
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if -2 * middle * math.log(middle) < entropy else (low, middle)
    return [math.log(low)] * 2


def played(part: Any, engine: Words, *, groups: int = 3, size: int = 8, env: Any = EchoEnv, **options: Any) -> Any:
    """The groups of a part, with the places of parents, and the play."""
    with echo_player(engine, lambda: env(turns=12)) as player:  # type: ignore[arg-type]

        async def run() -> Any:
            play = GroupPlay(player, **{"seed": 3, "step": 5, "first": 0, "size": size, **options})
            starts = [Start(100 + number, {"problem_id": f"p{number}"}) for number in range(groups)]
            found = await part(starts, size, play)
            play.name_parents(found)
            return found, play

        return asyncio.run(asyncio.wait_for(run(), 60))
