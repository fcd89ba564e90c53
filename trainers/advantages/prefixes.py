"""The tokens that the episodes of a group share because one branched off another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2_env.core.episode import Episode


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of an episode that it has in common with others.

    Attributes:
        length: Number of tokens of ``completion_ids``.
        members: Positions in the group of all episodes that begin with them, ascending.
    """

    length: int
    members: tuple[int, ...]


def shared_prefixes(group: Sequence[Episode]) -> list[list[Prefix]]:
    """Of each episode, the prefixes that it shares with others of the group, the shortest first.

    Only the places at which an episode branched off (``Episode.parent``) end a prefix: two episodes that happen to
    begin alike share nothing. It goes by the tokens before the branch and not by the parent's position, so that it
    holds for what a selector left of a group.

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
