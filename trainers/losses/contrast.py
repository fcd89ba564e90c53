"""Which rows of a group a contrastive term compares with which: what ``Tokens.relations`` holds."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.core.row import Row

LIKE, UNLIKE, NEITHER = 1, -1, 0


def relations(rows: Sequence[Row], position: int) -> tuple[list[int], list[int]]:
    """What the other rows of its group are to a row.

    A row of a right answer of the policy is to be like the expert's rows of its group, or where there is none like the
    other right ones, and unlike the wrong ones. To other rows all others are neither.

    Args:
        rows: The rows of an optimizer batch, whole groups of them.
        position: The row.

    Returns:
        Positions of the rows of the other episodes of its group, ascending, and what each is to it.
    """
    row = rows[position]
    others = [
        at
        for at, other in enumerate(rows)
        if other.episode.group == row.episode.group and other.episode is not row.episode
    ]
    if not row.episode.correct or row.episode.source == "expert":
        return others, [NEITHER] * len(others)
    expert = any(rows[at].episode.source == "expert" for at in others)

    def relation(other: Row) -> int:
        if other.episode.source == "expert":
            return LIKE
        if not other.episode.correct:
            return UNLIKE
        return NEITHER if expert else LIKE

    return others, [relation(rows[at]) for at in others]
