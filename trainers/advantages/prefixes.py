"""Find the tokens that episodes of a group share because one episode branched off another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2_env.core.episode import Episode


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first tokens of an episode that other episodes of its group share.

    Attributes:
        length: Number of tokens of ``completion_ids``.
        members: Positions, within the group, of all episodes with this prefix, ascending.
    """

    length: int
    members: tuple[int, ...]


def shared_prefixes(group: Sequence[Episode]) -> list[list[Prefix]]:
    """Return for each episode the prefixes that it shares with other episodes of the group, shortest first.

    A prefix ends only where an episode branched off (``Episode.parent``): two episodes that start with the same tokens
    by chance share nothing. Episodes are compared by their tokens before the branch, not by the parent's position, so
    ``group`` may lack episodes that a selector dropped.

    Args:
        group: The episodes of a group, or some of them.
    """
    found: list[list[Prefix]] = [[] for _ in group]
    branched = [episode.completion_ids[: episode.parent[1]] for episode in group if episode.parent is not None]
    for ids in sorted({tuple(ids) for ids in branched if ids}, key=len):
        members = tuple(
            place for place, episode in enumerate(group) if tuple(episode.completion_ids[: len(ids)]) == ids
        )
        if len(members) > 1:
            for place in members:
                found[place].append(Prefix(len(ids), members))
    return found
