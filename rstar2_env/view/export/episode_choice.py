"""Chooses the episodes in an export: whole groups, spread evenly over the run, up to a maximum number."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.episodes import matching_ids
from rstar2_env.view.queries.filters import read_filter
from rstar2_env.view.queries.rows import FROM, PLACE

_GOLDEN = 0.618
"""Golden ratio. The fractional parts of its multiples are spread evenly over [0, 1]; they determine which group is
chosen from each section of the list of groups."""


def choose_episodes(index: RunIndex, most: int, params: Mapping[str, str]) -> tuple[list[int], str]:
    """Choose the episodes of a run to export.

    Half of the chosen episodes are held-out episodes, half are training episodes; if there are too few of one kind,
    more of the other kind are chosen.

    Args:
        index: Index of the run.
        most: Maximum number of episodes.
        params: Filters of the episodes (``queries.filters``).

    Returns:
        The episodes' ids in the index, in the order of the table of episodes; and a note that states how many episodes
        were chosen and how, empty if none are omitted.

    Raises:
        ConfigurationError: A value of the filter is invalid.
    """
    wanted = read_filter(params)
    with index.reading() as db:
        picked = set(matching_ids(index, db, wanted, PLACE)) if wanted.q else None
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
    available = sum(len(group) for side in groups.values() for group in side)
    if available <= most:
        return [id_ for name in ("eval", "train") for group in groups[name] for id_ in group], ""
    held_out = _evenly(groups["eval"], max(most // 2, most - sum(map(len, groups["train"]))))
    trained = _evenly(groups["train"], most - len(held_out))
    omitted = (
        f"{len(held_out) + len(trained):,} of {available:,} episodes (whole groups, spread evenly over the steps; "
        f"at most {most:,} were requested)"
    )
    return held_out + trained, omitted


def _evenly(groups: Sequence[Sequence[int]], most: int) -> list[int]:
    """Choose groups that are spread evenly over a list; return their episodes, at most ``most`` in all.

    Groups are chosen whole, except that the first one is shortened if it has more than ``most`` episodes.
    """
    if sum(map(len, groups)) <= most:
        return [id_ for group in groups for id_ in group]
    if not groups or most <= 0:
        return []
    size = sum(map(len, groups)) / len(groups)
    count = max(1, min(len(groups), int(most / size)))
    # Backwards, so that the last group, the end of the run, is always included. The offset within each part varies,
    # because the same position of every step may hold the same problem.
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
