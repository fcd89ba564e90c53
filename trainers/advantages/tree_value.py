"""``tree_value``: the value of a token's node in the tree of a group's episodes: DeepSearch (arXiv 2509.25454).

The episodes of a group that branch off one another form a tree: a node ends where a turn ends or a branch starts. Each
episode backs up v = 1 if it is correct, else -1, weighted at each node by w = max(depth of the node / number of nodes
of the episode, 0.1), so late nodes have larger weights. Q of a node is the sum of the weighted values of the episodes
that pass through it, divided by the number of these episodes; if any of them is correct, only correct episodes are
summed. A_t = tanh(Q of the node) - the mean v of the group, without division by a deviation. ``add`` names scores, such
as the overlong penalty, that are added to A_t at every token of their episode, and to v in the mean. Use it for a
rollout that searches; without branches every episode is a separate path. If the rollout is ``deepsearch``, Q comes from
the search tree of this rollout, which has more nodes.
"""

# This module is longer than most parts because it finds the tree of a group before it backs up values.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option

from .base import ADVANTAGES, FloatArray, GroupAdvantage
from .prefixes import Prefix, shared_prefixes

_LEAST_WEIGHT = 0.1
_COMPLETE = ("answered", "terminated")


@dataclass(frozen=True)
class TreeValue(GroupAdvantage):
    r"""$\tanh Q - \text{mean value of the group}$, with the value $Q$ of the token's node in a tree (DeepSearch).

    The paper is arXiv 2509.25454. A group whose episodes all have the same value gets zero advantages.

    Args:
        incomplete: The value of an episode that a budget ended or that has no answer.
        add: Names of components of the reward, as in the metrics. Their sum in an episode is added to the advantage of
            each token of the episode, and to the episode's value in the group's mean.
    """

    incomplete: float = option(-1.0, least=-1, most=1)
    add: tuple[str, ...] = ()

    def estimate(self, group: Sequence[Episode]) -> Sequence[float | FloatArray]:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        leaves = [self._leaf(episode) for episode in group]
        if len(set(leaves)) < 2:
            return [0.0] * len(group)
        added = self._added(group)
        mean = (sum(leaves) + sum(added)) / len(leaves)
        if all("node_value" in episode.measured for episode in group):
            nodes = [np.tanh(episode.measured["node_value"]) for episode in group]
            return [values + more - mean for values, more in zip(nodes, added, strict=True)]
        shared = shared_prefixes(group)
        paths = [_path(episode, prefixes) for episode, prefixes in zip(group, shared, strict=True)]
        found: list[float | FloatArray] = []
        for place, episode in enumerate(group):
            values, start = np.zeros(len(episode.completion_ids)), 0
            for depth, stop in enumerate(paths[place], start=2):  # the prompt is the root, at depth 1
                passing = next((prefix.members for prefix in shared[place] if prefix.length >= stop), (place,))
                backed = [(leaves[one], max(depth / (len(paths[one]) + 1), _LEAST_WEIGHT)) for one in passing]
                values[start:stop] = math.tanh(node_value(backed) / len(passing)) + added[place] - mean
                start = stop
            found.append(values)
        return found

    def _added(self, group: Sequence[Episode]) -> list[float]:
        """Return, for each episode, the sum of the components that ``add`` names."""
        known = {name for episode in group for name in episode.rewards}
        if unknown := sorted(set(self.add) - known):
            raise ConfigurationError(
                f"The option advantage.add names {unknown}, but the components of the reward are "
                f"{sorted(known)}: use one of these.",
                option="advantage.add",
            )
        return [sum(episode.rewards.get(name, 0.0) for name in self.add) for episode in group]

    def _leaf(self, episode: Episode) -> float:
        if episode.correct:
            return 1.0
        return -1.0 if episode.end in _COMPLETE else self.incomplete


def _path(episode: Episode, prefixes: Sequence[Prefix]) -> list[int]:
    """Return, for each node of an episode, the index after its last token.

    A node without policy tokens is joined to the next one.
    """
    ends = {turn.stop for turn in episode.steps} | {prefix.length for prefix in prefixes}
    written = np.cumsum([0, *episode.mask])
    path: list[int] = []
    for end in sorted(ends):
        if written[end] > written[path[-1] if path else 0]:
            path.append(end)
    return path


def node_value(backed: Sequence[tuple[float, float]]) -> float:
    """Return the sum of value * weight over a node's episodes: over those with a positive value, or all if none has.

    DeepSearch's backup gives the same result for any order of the episodes: a positive value replaces negative values,
    and a negative value after a positive value is ignored.

    Args:
        backed: Value and weight of each episode that passes through the node.
    """
    good = [value * weight for value, weight in backed if value > 0]
    return sum(good) if good else sum(value * weight for value, weight in backed)


ADVANTAGES.register("tree_value", TreeValue)
