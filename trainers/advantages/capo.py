"""``capo``: the tokens of wrong steps earn less than other tokens: CAPO (arXiv 2508.02298).

R_t = C [the episode is correct] - P [token t is in a wrong step], which is 2, 1, 0 or -1 with C = 2 and P = 1. A_t =
(R_t - mean) / (std + eps) over all policy tokens of the group. A judge decides which steps are wrong. In the paper, it
is a large language model that is called four times, and the steps that all four critiques name count as wrong. The
judge ``statuses`` needs no model: a turn with a failed call is a wrong step. Use it to penalize mistakes inside correct
answers, and to penalize correct steps in wrong answers less than wrong steps.
"""

# This module is longer than most parts because wrong steps are found before tokens get values.

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.options.parts import make_inner

from ..ranks import ONE, Ranks
from .base import ADVANTAGES, Advantages, FloatArray
from .step_judges import STEP_JUDGES, Critique, StepJudge
from .tokens import normalized, on_tokens


@dataclass(frozen=True)
class Capo(CheckedOptions):
    r"""Outcome reward minus a penalty on the tokens of wrong steps, normalized over the group: CAPO (arXiv 2508.02298).

    The value of a token is $R_t = C c - P w_t$, where $c$ is 1 in a correct episode, else 0, and $w_t$ is 1 in a wrong
    step, else 0. The advantage is $\frac{R_t - \text{mean}}{\text{std} + \text{eps}}$ over all policy tokens of the
    group.

    Args:
        judge: Decides which steps are wrong: ``"statuses"``; a served language model,
            ``(model:url=http://localhost:8000/v1,model=NAME)``; or your own class, ``./mine.py:Judge``.
        vote: Combination of several critiques: ``"intersection"`` uses steps that all critiques name, ``"majority"``
            steps that more than half name; ``"average"`` weights each step by the share of critiques that name it.
        correct: $C$, the value of each token of a correct episode.
        penalty: $P$, the penalty on each token of a wrong step.
        eps: Added to the deviation.
    """

    least: ClassVar[int] = 2
    judge: Any = "statuses"
    vote: Literal["intersection", "majority", "average"] = "intersection"
    correct: float = option(2.0, least=0)
    penalty: float = option(1.0, least=0)
    eps: float = option(1e-4, least=0)
    _judge: StepJudge = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Create the judge.

        Raises:
            ConfigurationError: An option of the judge is not valid.
            UnknownNameError: The judge does not exist.
        """
        super().__post_init__()
        object.__setattr__(self, "_judge", make_inner(STEP_JUDGES, self.judge))

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``.

        Raises:
            ConfigurationError: The judge named tokens that do not exist.
        """
        episodes = [episode for group in groups for episode in group]
        found: Advantages = []
        with ThreadPoolExecutor(getattr(self._judge, "workers", 1)) as threads:
            critiques = threads.map(self._judge, episodes)  # in their order
            for group in groups:
                values: Advantages = [[self.values(episode, next(critiques)) for episode in group]]
                # Only this process is needed, since it has all episodes of the group.
                found += normalized([group], values, ONE, self.eps)
        return found

    def values(self, episode: Episode, critiques: Sequence[Critique]) -> FloatArray:
        """Return the value of each token before normalization, shape (completion tokens,)."""
        return on_tokens(self.correct * episode.correct, episode) - self.penalty * self._wrong(episode, critiques)

    def _wrong(self, episode: Episode, critiques: Sequence[Critique]) -> FloatArray:
        """Return 1 on tokens of wrong steps, else 0; with ``vote="average"``, the share of critiques that name them."""
        named = []
        for critique in critiques:
            inside = on_tokens(0.0, episode)
            for start, stop in critique:
                if not 0 <= start <= stop <= len(inside):
                    raise ConfigurationError(
                        f"The step judge {self.judge!r} reported a wrong step from token {start} to token "
                        f"{stop}, but the completion has only {len(inside)} tokens: a step judge must "
                        "return the start and the end of each wrong step as positions in the completion."
                    )
                inside[start:stop] = 1.0
            named.append(inside)
        share = np.mean(named, axis=0) if named else on_tokens(0.0, episode)
        if self.vote == "average":
            return share
        return (share >= 1 if self.vote == "intersection" else share > 0.5).astype(np.float64)


ADVANTAGES.register("capo", Capo)
