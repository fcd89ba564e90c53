"""``deepsearch``: grows episodes chunk by chunk in a search tree: DeepSearch (arXiv 2509.25454).

A node holds 256 tokens of a turn, or the rest of the turn; expanding a node plays 8 children. If the episodes of some
children end, the search selects one of these episodes and backs up its value (``chunk_tree`` has the formulas). It
selects among the right episodes, or among the wrong episodes if none is right, the one whose last chunk has the highest
mean log-probability. As long as no episode ends, the search descends by UCT with weight 2. After an episode has ended,
it continues at the best node of the whole tree. It stops when it has backed up as many episodes as the group needs (8
in the paper, with a maximum depth of 64). If episodes are missing, the group is filled with finished episodes that were
not backed up, with nodes of the frontier that are played to their ends, and with new episodes.

If at most a quarter of a problem's episodes are right, one right episode is kept. When the problem occurs again, the
group consists of this episode and new episodes, without a search. The paper trains on problems with a pass rate of at
most a quarter. Every chunk starts with a replay of the turns before it.
"""

# This module is longer than most parts because it implements a search.

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import BranchError
from rstar2_env.core.manner import PLAIN, Manner
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.packed_episodes import pack_episode, unpack_episode
from rstar2_env.rewards.scoring import unscore
from rstar2_env.search import Node

from ..samplers.base import Start
from .base import ROLLOUTS, Play, Rollout, at_once
from .chunk_tree import ChunkNode, back_up, best_child, best_of, child_of, values_of

_log = logging.getLogger(__name__)
_COMPLETE = ("answered", "terminated")
NODE_VALUE = "node_value"
"""Key in ``Episode.measured`` for the value of each token's tree node, which the advantage ``tree_value`` reads."""


@dataclass
class DeepSearch(CheckedOptions, Rollout):
    """Searches a tree of chunks for episodes to train on: DeepSearch (arXiv 2509.25454).

    Use this part with the advantage ``tree_value``, for problems that the policy rarely solves, in environments that
    are deterministic for the same seed and actions.

    Args:
        chunk: Maximum number of tokens of a node.
        width: Number of children of a node.
        depth: Maximum depth of a node.
        weight: Exploration weight of UCT.
        incomplete: Value of an episode that has no answer or that a budget ended.
        expansions: Maximum number of nodes that are expanded for one group.
        hard: A right episode is kept for later groups of its problem if the problem's pass rate (0 to 1) is at most
            this value; 0 keeps none.
        kept: Maximum number of kept episodes; the oldest are dropped.
    """

    chunk: int = option(256, least=1)
    width: int = option(8, least=1)
    depth: int = option(64, least=1)
    weight: float = option(2.0, least=0)
    incomplete: float = option(-1.0, least=-1, most=1)
    expansions: int = option(256, least=1)
    hard: float = option(0.25, least=0, most=1)
    kept: int = option(1024, least=1)
    _traces: dict[str, dict[str, Any]] = field(init=False, repr=False, default_factory=dict)

    staged: ClassVar[str] = "its search extends earlier episodes and chooses the episodes of the group"

    @property
    def manner(self) -> Manner:
        """Playing options that the part's episodes need; see ``Rollout``."""
        return Manner(chunk=self.chunk)

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; see ``Rollout``."""
        trace = self._traces.get(start.problem_id) if size > 1 else None
        search = _Search(self, number, start, size, play)
        return await (search.grow() if trace is None else search.reuse(trace))

    def report(self, group: Sequence[Episode]) -> dict[str, Any] | None:
        """Return the pass rate of the group's problem, and a right episode if the problem is hard; see ``Rollout``."""
        counted = [episode for episode in group if episode.available and episode.source != "stale"]
        if not counted or not counted[0].problem_id:
            return None
        right = [episode for episode in counted if episode.correct]
        share = len(right) / len(counted)
        trace = pack_episode(right[0]) if 0 < share <= self.hard else None
        return {"problem": counted[0].problem_id, "share": share, "trace": trace}

    def update(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Store the reported episodes, and drop those of problems that are no longer hard; see ``Rollout``."""
        for report in reports:
            if report["share"] > self.hard:
                self._traces.pop(report["problem"], None)
            elif report["trace"] is not None:
                self._traces.pop(report["problem"], None)
                self._traces[report["problem"]] = report["trace"]
        for oldest in list(self._traces)[: max(0, len(self._traces) - self.kept)]:
            del self._traces[oldest]

    def state_dict(self) -> dict[str, Any]:
        """Return the kept episodes, the oldest first."""
        return {"traces": [[problem, trace] for problem, trace in self._traces.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the kept episodes that ``state_dict`` returned."""
        self._traces = {str(problem): dict(trace) for problem, trace in state["traces"]}


class _Search:
    """The tree search that plays the episodes of one group."""

    def __init__(self, part: DeepSearch, group: int, start: Start, size: int, play: Play) -> None:
        self.part, self.group, self.start, self.size, self.play = part, group, start, size, play
        self.root: ChunkNode = Node(None)
        self.frontier: list[ChunkNode] = [self.root]
        self.ends: list[ChunkNode] = []
        self.spare: list[ChunkNode] = []
        self.members = 0

    async def grow(self) -> list[Episode]:
        """Return the group's episodes: those that the search finished and, if they are too few, further ones."""
        node: ChunkNode | None = self.root
        for _ in range(self.part.expansions):
            if node is None or len(self.ends) >= self.size:
                break
            children = await self._expand(node)
            ended = [child for child in children if child.terminal]
            open_children = [child for child in children if child in self.frontier]
            if ended:
                chosen = min(ended, key=lambda one: (not _episode(one).correct, one.reward))
                self.spare += [one for one in ended if one is not chosen]
                self._end(chosen)
            if ended or not open_children:
                node = best_of(self.frontier, self.part.depth) if self.frontier else None
            else:
                node = best_child(open_children, self.part.weight)
        await self._fill()
        failed = []
        for episode in await self._fresh(self.size - len(self.ends)):
            if episode.available:
                self._end(child_of(self.root, episode))
            else:
                failed.append(episode)
        for end in self.ends:
            _episode(end).measured[NODE_VALUE] = values_of(end)
        return [_episode(end) for end in self.ends] + failed

    async def reuse(self, trace: Mapping[str, Any]) -> list[Episode]:
        """Return a group of new episodes and, as the last one, the kept episode that is stored in ``trace``."""
        fresh = await self._fresh(self.size - 1)
        old = unpack_episode(trace)
        old.source, old.group, old.parent = "stale", fresh[0].group, None
        unscore(old)
        return [*fresh, old]

    async def _expand(self, node: ChunkNode) -> list[ChunkNode]:
        """Play the children of a node, and return those that did not fail."""
        self.frontier.remove(node)
        played = await self._played(node, self.part.width, self.part.manner)
        children = [child_of(node, episode) for episode in played if episode.available]
        self.frontier += [one for one in children if not one.terminal and one.depth < self.part.depth]
        return children

    async def _played(self, node: ChunkNode, count: int, manner: Manner) -> list[Episode]:
        if node.state is None:
            return await self._fresh(count, manner)
        try:
            return await self.play.branch(node.state, len(node.state.completion_ids), count, manner=manner)
        except BranchError as error:
            _log.warning(
                "One branch of the search for episodes is abandoned, because it could not be played: %s", error
            )
            return []

    async def _fresh(self, count: int, manner: Manner = PLAIN) -> list[Episode]:
        members = range(self.members, self.members + max(0, count))
        self.members += len(members)
        playing = (self.play.episode(self.start, group=self.group, member=one, manner=manner) for one in members)
        return await at_once(playing)

    async def _fill(self) -> None:
        """Fill the group: with finished episodes that updated no node, then with episodes from the best open nodes."""
        for spare in self.spare[: max(0, self.size - len(self.ends))]:
            self._end(spare)
        while len(self.ends) < self.size and self.frontier and self.frontier != [self.root]:
            node = best_of(self.frontier, self.part.depth)
            self.frontier.remove(node)
            for episode in await self._played(node, 1, PLAIN):
                if episode.available:
                    self._end(child_of(node, episode))

    def _end(self, node: ChunkNode) -> None:
        episode = _episode(node)
        wrong = -1.0 if episode.end in _COMPLETE else self.part.incomplete
        back_up(node.path(), 1.0 if episode.correct else wrong)
        self.ends.append(node)


def _episode(node: ChunkNode) -> Episode:
    assert node.state is not None  # only the root has none
    return node.state


ROLLOUTS.register("deepsearch", DeepSearch)
