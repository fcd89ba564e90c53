"""Rows of one training step, without an environment: lengths as of long reasoning, most groups rejected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.core.turn import Turn


@dataclass(frozen=True)
class Step:
    """The shape of a step, in tokens at full size.

    Attributes:
        groups: Groups that are played.
        size: Episodes of each group that would train.
        rejected: Share of the groups of which nothing trains.
        prompt: Mean length of a prompt.
        mean: Mean length of prompt and completion together.
        longest: Largest length.
        scale: Divisor of every length.
    """

    groups: int = 64
    size: int = 8
    rejected: float = 0.7
    prompt: int = 256
    mean: int = 6144
    longest: int = 12288
    scale: int = 64

    def tokens(self, full: int) -> int:
        """A number of tokens at this scale."""
        return max(2, full // self.scale)


def rows_of(step: Step, vocabulary: int, seed: int = 0) -> list[Row]:
    """Rows of the groups that train, each of three turns with two answers of a tool.

    Lengths are of a beta distribution between the prompt and the longest, with the wanted mean.

    Args:
        step: The shape of the step.
        vocabulary: Ids are below this.
        seed: Of lengths and tokens.
    """
    rng = np.random.default_rng(seed)
    share = (step.mean - step.prompt) / (step.longest - step.prompt)
    rows = []
    for group in range(round(step.groups * (1 - step.rejected))):
        prompt = [int(token) for token in rng.integers(4, vocabulary, size=step.tokens(step.prompt))]
        for member in range(step.size):
            completion = step.tokens(int(rng.beta(2.0, 2.0 * (1 - share) / share) * (step.longest - step.prompt)))
            rows.append(_row(group, prompt, max(6, completion), 1.0 if member % 2 else -1.0, rng, vocabulary))
    return rows


def group_rows(groups: int, size: int, prompt: int, own: int, vocabulary: int, seed: int = 0) -> list[Row]:
    """Rows of groups that share only their prompts, all of one length.

    Args:
        groups: Number of groups.
        size: Number of rows in each group.
        prompt: Tokens of a prompt.
        own: Tokens after the prompt, at least 6.
        vocabulary: Ids are below this.
        seed: Seed of the tokens.
    """
    rng = np.random.default_rng(seed)
    prompts = [[int(token) for token in rng.integers(4, vocabulary, size=prompt)] for _ in range(groups)]
    return [
        _row(group, prompts[group], own, 1.0 if member % 2 else -1.0, rng, vocabulary)
        for group in range(groups)
        for member in range(size)
    ]


def _row(
    group: int, prompt: list[int], length: int, advantage: float, rng: np.random.Generator, vocabulary: int
) -> Row:
    third, answer = length // 3, max(1, length // 12)
    spans = [(0, third - answer), (third, 2 * third - answer), (2 * third, length)]
    mask = [0] * length
    for start, stop in spans:
        mask[start:stop] = [1] * (stop - start)
    ids = [int(token) for token in rng.integers(4, vocabulary, size=length)]
    episode = Episode(group=group, steps=[Turn(start, stop) for start, stop in spans], turns=3)
    return Row(episode, prompt, ids, mask, [-float(np.log(vocabulary)) * one for one in mask], advantage=advantage)
