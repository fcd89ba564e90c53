"""Groups for tests of selectors: successes and failures with penalties, lost episodes, and what a selector chooses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.trainers.selectors.base import Selector

OK, BAD, OURS = ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE


def success(errors: int = 0, calls: int = 4, tags: int = 1, turns: int = 5) -> Episode:
    return Episode(
        reward=1.0,
        correct=True,
        end="answered",
        statuses=[BAD] * errors + [OK] * (calls - errors),
        answer_tags=tags,
        turns=turns,
    )


def failure(errors: int = 0, calls: int = 4) -> Episode:
    return Episode(end="answered", statuses=[BAD] * errors + [OK] * (calls - errors), answer_tags=1, turns=5)


def lost() -> Episode:
    return Episode(end="unavailable", statuses=[OURS])


def choose(selector: Selector, group: Sequence[Episode], keep: int, seed: int = 0) -> list[int]:
    return selector(group, keep, np.random.default_rng(seed))


def counts(group: Sequence[Episode], chosen: Sequence[int]) -> tuple[int, int]:
    positives = sum(group[i].correct for i in chosen)
    return positives, len(chosen) - positives
