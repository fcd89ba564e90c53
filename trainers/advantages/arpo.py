"""``arpo``: averages advantages over the branches of an episode that share a token: ARPO (arXiv 2507.19849).

With ``hard`` attribution, a token shared by several branches gets the mean of their advantages, and every other token
gets the advantage of its own episode. With ``soft`` attribution, each episode keeps its advantage on all tokens. A
shared token occurs in the rows of all branches that share it, and the sum of its advantages over these rows is the same
as with ``hard``; the gradients differ only if ratios are clipped. Use it for a rollout that branches after tool calls;
without branches it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rstar2_env.core.episode import Episode

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, FloatArray
from .prefixes import shared_prefixes
from .tokens import on_tokens
from .wrapped import Wrapped


@dataclass(frozen=True)
class Arpo(Wrapped):
    r"""Advantages of the inner estimator ``of``, for episodes that share tokens: ARPO (arXiv 2507.19849).

    With ``hard``, a token that the branches $B_t$ share has the advantage
    $\frac{1}{\lvert B_t\rvert} \sum_{b \in B_t} A_b$, where $A_b$ is the inner advantage of branch $b$.

    Args:
        of: The inner estimator, written as in a recipe: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``.
        attribution: ``"soft"``, the paper's default, keeps each episode's advantage; ``"hard"`` gives each shared token
            the mean advantage of the branches that share it.
    """

    attribution: Literal["soft", "hard"] = "soft"

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        values = self.inner(groups, ranks)
        if self.attribution == "soft":
            return values
        return [_shared(group, own) for group, own in zip(groups, values, strict=True)]


def _shared(group: Sequence[Episode], values: Sequence[float | FloatArray]) -> list[float | FloatArray]:
    own = [on_tokens(value, episode) for episode, value in zip(group, values, strict=True)]
    found: list[float | FloatArray] = []
    for value, mine, prefixes in zip(values, own, shared_prefixes(group), strict=True):
        tokens, start = mine.copy(), 0
        for prefix in prefixes:
            place = slice(start, prefix.length)
            tokens[place] = np.mean([own[member][place] for member in prefix.members], axis=0)
            start = prefix.length
        found.append(tokens if prefixes else value)
    return found


ADVANTAGES.register("arpo", Arpo)
