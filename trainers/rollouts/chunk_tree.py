"""Search tree of ``deepsearch``: nodes are chunks of episodes, and values are backed up from the ends of episodes.

Formulas of DeepSearch (arXiv 2509.25454, sections 3.1 to 3.3) as in its released code. Covered: backing up values,
choice of the next child, choice of the next node of the whole tree, value of a token's node. Not covered: playing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.manner import OPEN
from rstar2_env.search import Node, uct

ChunkNode = Node[Episode | None, int]
"""Node of the search tree: a chunk of tokens, with the episode up to the end of the chunk (``None`` at the root).

Its ``reward`` is the mean -log p over the tokens of the chunk.
"""
LEAST_WEIGHT = 0.1


def back_up(path: Sequence[ChunkNode], value: float) -> None:
    """Update every node on the path of a finished episode: add one visit, and value * max((depth + 1) / length, 0.1).

    ``depth`` counts from 0 at the root, and ``length`` is the number of nodes. At each node, the first episode with a
    positive value replaces the sum of the negative values; later negative values are ignored.

    Args:
        path: The nodes from the root to the episode's last node.
        value: Value of the episode, -1 to 1.
    """
    for depth, node in enumerate(path):
        node.visits += 1
        weighted = value * max((depth + 1) / len(path), LEAST_WEIGHT)
        if node.total * value >= 0:
            node.total += weighted
        elif value > 0:
            node.total = weighted


def best_child(children: Sequence[ChunkNode], weight: float) -> ChunkNode:
    """Return the first child with the highest Q + weight * sqrt(ln N / n).

    n counts the visits of the child, and N those of its parent; the score of a child without visits is Q.

    Args:
        children: The children of one node.
        weight: Exploration weight.
    """

    def score(node: ChunkNode) -> float:
        parent = 1 if node.parent is None else node.parent.visits
        return uct(node.mean, parent, node.visits, weight=weight) if node.visits else node.mean

    return max(children, key=score)


def frontier_score(parent: float, entropy: float, depth: int, most: int) -> float:
    """Return 0.4 tanh(Q of the parent) + 0.4 H + 0.01 sqrt(depth / most).

    Args:
        parent: Q of the parent.
        entropy: H, the mean -log p of the node's chunk.
        depth: The node's depth.
        most: Maximum depth.
    """
    return 0.4 * math.tanh(parent) + 0.4 * entropy + 0.01 * math.sqrt(depth / most)


def best_of(nodes: Sequence[ChunkNode], most: int) -> ChunkNode:
    """Return the node with the highest ``frontier_score``; of nodes with equal scores, the first one.

    Args:
        nodes: The frontier: nodes that the search may expand next.
        most: Maximum depth of the tree.
    """

    def score(node: ChunkNode) -> float:
        parent = 0.0 if node.parent is None else node.parent.mean
        return frontier_score(parent, node.reward, node.depth, most)

    return max(nodes, key=score)


def child_of(parent: ChunkNode, episode: Episode) -> ChunkNode:
    """Return a new child of a node; it counts as visited unless its episode has ended.

    Args:
        parent: The node that was expanded.
        episode: The episode up to the new node.
    """
    begun = 0 if parent.state is None else len(parent.state.completion_ids)
    fresh = [logp for logp, own in zip(episode.logprobs[begun:], episode.mask[begun:], strict=True) if own]
    entropy = -sum(fresh) / len(fresh) if fresh else 0.0
    node: ChunkNode = Node(episode, parent=parent, action=begun, reward=entropy)
    node.terminal = episode.end != OPEN
    node.visits = int(not node.terminal)
    return node


def values_of(end: ChunkNode) -> list[float]:
    """Return, for each token of an episode, the value Q of its node.

    Args:
        end: The last node of the episode.
    """
    assert end.state is not None  # only the root has none
    values = np.zeros(len(end.state.completion_ids))
    for node in end.path()[1:]:
        values[node.taken :] = node.mean
    return [float(value) for value in values]
