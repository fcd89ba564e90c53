"""Positives and negatives of each row for a contrastive term of the loss (``Tokens.relations``)."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.core.row import Row

LIKE, UNLIKE, NEITHER = 1, -1, 0


def relations(rows: Sequence[Row], position: int) -> tuple[list[int], list[int]]:
    """Find the positives and negatives of a row among the other rows of its group.

    For a correct answer of the policy, the positives are the expert's rows of its group or, if there are none, the
    other correct rows; the negatives are the wrong rows. All other rows have neither positives nor negatives.

    Args:
        rows: The rows of an optimizer batch, in whole groups.
        position: Position of the row.

    Returns:
        Positions of the rows of the other episodes in the row's group, ascending; and for each of them 1 if it is a
        positive, -1 if it is a negative, else 0.
    """
    row = rows[position]
    others = [at for at, other in enumerate(rows) if other.group == row.group and other.episode is not row.episode]
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
