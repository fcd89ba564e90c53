"""Aggregations, which define the average of token losses: ``token_mean``, ``seq_mean``, ``prompt_mean``, ``const_len``.

All aggregations count the rows of the whole optimizer batch on all processes, without the padding rows that only keep
processes in step. The gradient therefore does not depend on the division of rows into micro-batches and processes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.rules import FromRun, Rule

from ..ranks import Ranks
from .base import AGGREGATIONS, FloatArray, IntArray


@dataclass(frozen=True)
class TokenMean(CheckedOptions):
    r"""Every token has the same weight: $\frac{1}{\text{tokens}}$ (DAPO, arXiv 2503.14476, section 3.3).

    A long episode thus has more weight than a short episode, so that mistakes in long episodes are unlearned too. This
    is the usual choice.
    """

    def __call__(self, lengths: IntArray, groups: IntArray, ranks: Ranks) -> FloatArray:
        """Return the weight of each row's policy tokens, (rows,); see ``Aggregation``."""
        return _each(lengths, 1 / _most(ranks.sum(np.array([lengths.sum()], float))[0]))


@dataclass(frozen=True)
class SeqMean(CheckedOptions):
    r"""Every row has the same weight: the mean over rows of the mean over tokens (GRPO, arXiv 2402.03300, Eq. 3).

    A token's weight is $\frac{1}{\text{rows} \cdot \text{tokens of the row}}$. Use it for losses of whole rows, such as
    ``ppo_clip:level=sequence``; with token losses it favours short correct answers and long wrong answers.
    """

    def __call__(self, lengths: IntArray, groups: IntArray, ranks: Ranks) -> FloatArray:
        """Return the weight of each row's policy tokens, (rows,); see ``Aggregation``."""
        return _each(lengths, 1 / (_rows(lengths, ranks) * np.maximum(lengths, 1)))


@dataclass(frozen=True)
class PromptMean(CheckedOptions):
    r"""Every group has the same weight: the mean over groups of the mean over all tokens of the group.

    A token's weight is $\frac{1}{\text{groups} \cdot \text{tokens of the group}}$, as in SkyRL's ``prompt_mean``. Use
    it for groups of different sizes, or problems whose episodes differ widely in length.
    """

    def __call__(self, lengths: IntArray, groups: IntArray, ranks: Ranks) -> FloatArray:
        """Return the weight of each row's policy tokens, (rows,); see ``Aggregation``."""
        own: Counter[int] = Counter()
        for group, length in zip(groups.tolist(), lengths.tolist(), strict=True):
            own[group] += length
        total = sum(ranks.gather(own), Counter[int]())  # a sum of counters has no groups without tokens
        tokens = np.array([total[group] for group in groups.tolist()], float)
        return _each(lengths, 1 / (_most(len(total)) * np.maximum(tokens, 1)))


@dataclass(frozen=True)
class ConstLen(CheckedOptions):
    r"""Every token has the weight $\frac{1}{\text{rows} \cdot \text{length}}$ with a constant length (Dr. GRPO).

    The formula is from section 3.2 of arXiv 2503.20783. With ``length=1`` the loss is the mean over rows of the sum
    over each row's tokens, as in LUSPO and GVPO.

    Args:
        length: The constant, in tokens; usually the budget of an episode.
    """

    length: Annotated[int, Rule(least=1), FromRun("rollout.max_episode_tokens")]

    def __call__(self, lengths: IntArray, groups: IntArray, ranks: Ranks) -> FloatArray:
        """Return the weight of each row's policy tokens, (rows,); see ``Aggregation``."""
        return _each(lengths, 1 / (_rows(lengths, ranks) * self.length))


def _each(lengths: IntArray, weight: float | FloatArray) -> FloatArray:
    weights: FloatArray = np.where(lengths > 0, weight, 0.0)
    return weights


def _rows(lengths: IntArray, ranks: Ranks) -> float:
    return _most(ranks.sum(np.array([np.count_nonzero(lengths)], float))[0])


def _most(count: float) -> float:
    return max(float(count), 1.0)


AGGREGATIONS.register("token_mean", TokenMean)
AGGREGATIONS.register("seq_mean", SeqMean)
AGGREGATIONS.register("prompt_mean", PromptMean)
AGGREGATIONS.register("const_len", ConstLen)
