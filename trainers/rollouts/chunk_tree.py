"""The tree that ``deepsearch`` grows: its nodes are chunks of episodes, its values are backed up from their ends.

Formulas of DeepSearch (arXiv 2509.25454, sections 3.1 to 3.3) as its released code has them. Covered: what is backed
up, which child is followed, which node of the whole tree is next, what a token's node is worth. Not covered: playing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.manner import OPEN
from rstar2_env.search import Node, uct

ChunkNode = Node[Episode | None, int]
"""A node: the episode as far as it goes there (none at the root). ``reward`` is the mean -log p of its chunk."""
LEAST_WEIGHT = 0.1


def back_up(path: Sequence[ChunkNode], value: float) -> None:
    """Let an end count in every node on the way to it: one visit, and value * max((depth + 1) / length, 0.1).

    A right end takes the place of what wrong ones have left, and wrong ends are ignored where there is a right one.

    Args:
        path: The nodes from the root to the end.
        value: What the end is worth, -1 to 1.
    """
    for depth, node in enumerate(path):
        node.visits += 1
        weighted = value * max((depth + 1) / len(path), LEAST_WEIGHT)
        if node.total * value >= 0:
            node.total += weighted
        elif value > 0:
            node.total = weighted


def followed(children: Sequence[ChunkNode], weight: float) -> ChunkNode:
    """The child with the highest Q + weight * sqrt(ln N / n); the first among equals. One without a visit has no bonus.

    Args:
        children: The children of one node.
        weight: Of what is unknown.
    """

    def score(node: ChunkNode) -> float:
        parent = 1 if node.parent is None else node.parent.visits
        return uct(node.mean, parent, node.visits, weight=weight) if node.visits else node.mean

    return max(children, key=score)


def frontier_score(parent: float, entropy: float, depth: int, most: int) -> float:
    """0.4 tanh(Q of the parent) + 0.4 H + 0.01 sqrt(depth / most).

    Args:
        parent: Q of the parent.
        entropy: H, the mean -log p of the node's chunk.
        depth: The node's depth.
        most: The largest there may be.
    """
    return 0.4 * math.tanh(parent) + 0.4 * entropy + 0.01 * math.sqrt(depth / most)


def best_of(nodes: Sequence[ChunkNode], most: int) -> ChunkNode:
    """The node of the frontier with the highest score; the first among equals.

    Args:
        nodes: The frontier.
        most: The largest depth there may be.
    """

    def score(node: ChunkNode) -> float:
        parent = 0.0 if node.parent is None else node.parent.mean
        return frontier_score(parent, node.reward, node.depth, most)

    return max(nodes, key=score)


def child_of(parent: ChunkNode, episode: Episode) -> ChunkNode:
    """A new node for what was played from another one; it counts as visited unless the episode has ended there.

    Args:
        parent: Where it was played from.
        episode: The episode as far as it goes now.
    """
    begun = 0 if parent.state is None else len(parent.state.completion_ids)
    fresh = [logp for logp, own in zip(episode.logprobs[begun:], episode.mask[begun:], strict=True) if own]
    entropy = -sum(fresh) / len(fresh) if fresh else 0.0
    node: ChunkNode = Node(episode, parent=parent, action=begun, reward=entropy)
    node.terminal = episode.end != OPEN
    node.visits = int(not node.terminal)
    return node


def values_of(end: ChunkNode) -> list[float]:
    """Q of the node of each token of an episode.

    Args:
        end: Where it ended.
    """
    assert end.state is not None  # an end was played
    values = np.zeros(len(end.state.completion_ids))
    for node in end.path()[1:]:
        values[node.taken :] = node.mean
    return [float(value) for value in values]
