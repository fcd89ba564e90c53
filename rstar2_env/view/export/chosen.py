"""Which episodes of a run an export holds: whole groups, evenly over the run, as many as there is room for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.episodes import numbers_of
from rstar2_env.view.queries.filters import read_filter
from rstar2_env.view.queries.rows import FROM, PLACE

_GOLDEN = 0.618
"""About the golden ratio: parts of its multiples fall evenly between 0 and 1, however many there are."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some episodes of a run.

    Attributes:
        ids: Their numbers in the index, in the order of a list.
        there: How many there are of those that were asked for.
        why: What was left out and why, in words; empty where nothing was.
    """

    ids: list[int]
    there: int
    why: str


def choose(index: RunIndex, most: int, asked: Mapping[str, str]) -> Chosen:
    """Choose episodes.

    Half of the room is for those of held-out problems, the other half for those of training; what one leaves, the
    other takes.

    Args:
        index: The run's.
        most: Episodes at most.
        asked: A filter, as of the table of episodes.

    Raises:
        ConfigurationError: A value of the filter is of another form.
    """
    wanted = read_filter(asked)
    with index.reading() as db:
        picked = set(numbers_of(index, db, wanted, PLACE)) if wanted.q else None
        groups: dict[str, list[list[int]]] = {"train": [], "eval": []}
        last = None
        for number, *place in db.execute(
            f"SELECT e.id, e.split, e.step, e.round, e.grp FROM {FROM} WHERE {wanted.where} ORDER BY {PLACE}",
            wanted.values,
        ):
            if picked is not None and number not in picked:
                continue
            if place != last:
                groups.setdefault(place[0], []).append([])
                last = place
            groups[place[0]][-1].append(number)
    there = sum(len(group) for side in groups.values() for group in side)
    if there <= most:
        return Chosen([one for name in ("eval", "train") for group in groups[name] for one in group], there, "")
    held_out = _evenly(groups["eval"], max(most // 2, most - sum(map(len, groups["train"]))))
    trained = _evenly(groups["train"], most - len(held_out))
    why = (
        f"{len(held_out) + len(trained):,} of {there:,} episodes: whole groups, evenly over the steps, since "
        f"--episodes is {most:,}"
    )
    return Chosen(held_out + trained, there, why)


def _evenly(groups: Sequence[Sequence[int]], most: int) -> list[int]:
    """Whole groups, evenly over a list, up to a number of episodes; a group that is larger than that is cut."""
    if sum(map(len, groups)) <= most:
        return [one for group in groups for one in group]
    if not groups or most <= 0:
        return []
    size = sum(map(len, groups)) / len(groups)
    count = max(1, min(len(groups), int(most / size)))
    # Backwards, so that the last group, which tells how it ended, is always there; of each part another place, as the
    # same place of every step may hold the same problem.
    ends = [(at * len(groups)) // count for at in range(count + 1)]
    places = sorted(
        len(groups) - 1 - begin - int(at * _GOLDEN % 1 * (end - begin))
        for at, (begin, end) in enumerate(itertools.pairwise(ends))
    )
    found: list[int] = []
    for place in places:
        if len(found) + len(groups[place]) <= most or not found:
            found += groups[place][: most - len(found)]
    return found
