"""Rows for tests of training: random tokens, with what a tool answered between two turns of the policy."""

from __future__ import annotations

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn

FIRST, LAST = 30, 90
"""Ids that are neither special nor words of a dialect."""


def row(group: int, prompt: int, completion: int, advantage: object, *, seed: int = 0, version: int = 0) -> Row:
    """One row of two turns; the middle of its completion is the answer of a tool.

    Args:
        group: Number of its group.
        prompt: Tokens of the prompt.
        completion: Tokens of the completion; from 3 on there is a tool's answer.
        advantage: One number, or one for each token of the completion.
        seed: Seed of its tokens, together with the other numbers.
        version: Version of the weights that drew it.
    """
    rng = np.random.default_rng([group, prompt, completion, seed])
    stop = completion // 3
    start = max(stop, completion - completion // 2)
    mask = [0 if stop <= place < start else 1 for place in range(completion)]
    turns = [Turn(0, stop, statuses=[ToolStatus.OK], version=version), Turn(start, completion, version=version)]
    logprobs = [float(-rng.uniform(3, 6)) * one for one in mask]
    episode = Episode(group=group, steps=turns, turns=2)
    ids = [int(token) for token in rng.integers(FIRST, LAST, size=prompt + completion)]
    return Row(episode, ids[:prompt], ids[prompt:], mask, logprobs, advantage=advantage)  # type: ignore[arg-type]


def alike(group: int, prompt: int, completion: int, members: int = 4) -> list[Row]:
    """Rows of one group, of unequal length, which share their prompt; the second leaves the first in its last turn."""
    rows = [
        row(group, prompt, completion + member, 1.0 - 0.75 * member, seed=100 + member) for member in range(members)
    ]
    for one in rows[1:]:
        one.prompt_ids = rows[0].prompt_ids
    most = completion - completion // 4
    rows[1].completion_ids[:most] = rows[0].completion_ids[:most]
    return rows


def few_rows() -> list[Row]:
    """Two groups of rows of unequal length; one row has no advantage, one has an advantage of each token."""
    each = np.linspace(-1, 1, 11)
    return [row(0, 4, 9, 1.0), row(0, 4, 23, -1.0), row(3, 7, 12, 0.0), row(3, 7, 11, each), row(3, 7, 5, -0.5)]
