"""``Collector``: plays, scores and selects the episodes of a step, and makes the rows that train; no TRL, no torch.

A step goes so: draw starts, the same on every process, each of which takes its share; play them; score; select; play
fresh groups in place of rejected ones, for as many rounds as are allowed, or copy others; compute the advantages of all
kept groups at once; make rows; tell the sampler and the selector how the groups of all processes went.

A group stays on its process. Its episodes are played wherever there is room (``episode_queue``) and come back to it;
beside them only outcomes and counts are exchanged. If one process raises, all do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from rstar2_env.core.blocking import run_blocking
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import FloatArray, Row
from rstar2_env.problems import ProblemSource
from rstar2_env.rewards.base import RewardJudge

from ..advantages.base import Measure, as_number, check_advantages
from ..queue.job import Carries
from ..queue.round import AbandonedError, EpisodeQueue, Limits, Round
from ..queue.wire import Wire
from ..ranks import ONE, Ranks, Together
from ..rollouts.base import Apart, Learns, MakesRows, check_manner
from ..samplers.base import Sampler, Start, told_by
from ..selectors.base import Observes, Settles
from .batch import Batch, Group
from .carried_over import MOST_STEPS, LeftOff
from .clock import Clock
from .collector_parts import CollectorParts, check_parts, heard_of, told_of
from .group_play import GroupPlay, Place, Player
from .scoring import paid_by_turn, scorer_of
from .selection import select, weigh
from .step_figures import names_in, step_figures

SURPLUS = "surplus"
"""Reason of a group that came out of the last round of refill beyond ``problems_per_step``."""

TAIL = "tail"
"""Reason of a group whose step did not wait for it."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A group of a round: where it starts, which one it is, and how many steps have left it off."""

    start: Start
    place: Place
    steps: int = 0


class Collector:
    """Collects the rows of one step after another; every process of a run has one, and all collect together.

    Args:
        parts: Rollout, reward components, selector and advantage.
        player: Plays single episodes.
        problems_per_step: Groups that train in a step, over all processes.
        group_size: Episodes of a group that train, at most.
        oversample: Episodes played for each of them.
        refill: Rounds in which rejected groups are replaced by fresh ones.
        replace: Share of ``problems_per_step`` from which on copies of other groups train in place of missing ones, and
            no further round is played; ``None`` trains on fewer.
        seed: Seed from which the draws of policy, rollout part and selector are derived.
        ranks: The processes.
        sampler: Draws the starts of the groups.
        early_stop: Cancel the rest of a group once its selector has enough episodes.
        one_queue: Let any process play an episode that another has no room for.
        tail: What becomes of groups that have not ended when ``problems_per_step`` have, where ``spare`` more were
            begun: ``wait`` for them, ``drop`` them, or ``carry`` them over to the next step.
        spare: Groups begun beyond ``problems_per_step``, as a share of it.
        limits: Says how many episodes may play at the same time, over all processes that share a queue; ``None`` is
            ``player.max_in_flight`` for each.
        patience_s: Seconds that a process waits for a word of the others while episodes are played.
        on_groups: Called with the groups of this process and the round, whenever a round has been played and scored.
        judge: For reward components and rollout parts that need one.
        measure: Measures the policy, for an advantage that needs it.
        problems: The environment's source of problems, for rollout parts and rewards that look at them.

    Raises:
        ConfigurationError: ``problems_per_step`` is no multiple of the number of processes, groups are too small for
            the advantage, or it needs what nobody measures, the reward cannot be computed, ``early_stop`` is on and
            the selector has no ``settled``, or there are ``limits`` and every process has a queue of its own.
    """

    def __init__(
        self,
        parts: CollectorParts,
        player: Player,
        *,
        problems_per_step: int,
        group_size: int,
        sampler: Sampler,
        oversample: int = 1,
        refill: int = 0,
        replace: float | None = None,
        seed: int = 0,
        ranks: Ranks = ONE,
        early_stop: bool = False,
        one_queue: bool = True,
        tail: str = "wait",
        spare: float = 0.25,
        limits: Limits | None = None,
        patience_s: float = 1800.0,
        on_groups: Callable[[Sequence[Sequence[Episode]], int], None] | None = None,
        judge: RewardJudge | None = None,
        measure: Measure | None = None,
        problems: ProblemSource | None = None,
    ) -> None:
        if problems_per_step % ranks.size:
            raise ConfigurationError(
                f"problems_per_step={problems_per_step} groups cannot be shared by {ranks.size} processes without "
                f"splitting one; use a multiple of {ranks.size}."
            )
        if (limits is not None or tail != "wait") and ranks.size > 1 and not one_queue:
            raise ConfigurationError(
                "What holds for the episodes of all processes together (adaptive_in_flight, tail) needs one queue of "
                "them",
                option="rollout.one_queue",
            )
        if tail == "carry" and not isinstance(player, Carries):
            raise ConfigurationError(
                f"The player {type(player).__name__} cannot leave off in the middle of an episode: it has no `carry`",
                option="rollout.tail",
            )
        check_manner(parts.rollout, player)
        check_parts(parts, group_size=group_size, early_stop=early_stop, tail=tail, measured=measure is not None)
        self.parts, self.player, self.sampler = parts, player, sampler
        self._wanted, self._keep, self._size = problems_per_step, group_size, group_size * oversample
        self._refill, self._seed, self._ranks, self._early_stop = refill, seed, ranks, early_stop
        self._one_queue, self._limits, self._patience_s = one_queue, limits, patience_s
        self._queue: EpisodeQueue | None = None
        self._tail, self._begin = tail, problems_per_step
        if tail != "wait":
            self._begin = math.ceil(problems_per_step * (1 + spare))
        self._left: list[LeftOff] = []
        self._enough = problems_per_step if replace is None else replace * problems_per_step
        self._on_groups, self._measure, self._problems, self._judge = on_groups, measure, problems, judge
        self._scorer = scorer_of(parts.rewards, judge, problems)
        self._counts = dict.fromkeys(("steps", "groups", "rejected", "refilled"), 0)
        self._names: set[tuple[str, str]] = set()

    def collect(self, step: int) -> Batch:
        """Play, score and select the episodes of a step.

        Args:
            step: Number of optimizer steps so far.

        Returns:
            The rows and the groups of this process.

        Raises:
            OtherProcessError: Another process failed.
        """
        clock = Clock()
        stands = told_by(self.sampler)
        with Together(self._ranks) as ranks, self._failing():
            groups, missing = self._play_rounds(step, ranks, clock)
            with clock.of("advantage"):
                advantages = self._advantages(groups, missing, ranks)
                rows = [
                    row
                    for group, values in zip(groups, advantages, strict=True)
                    for _ in range(1 + group.copies)
                    for row in self._rows(group, values)
                ]
            refilled = sum(group.round > 0 for group in groups)
            said = told_of(self.parts.rollout, groups)
            told = ranks.gather(([group.outcome() for group in groups], names_in(groups), refilled, said))
            outcomes = sorted(chain.from_iterable(own for own, *_ in told), key=lambda outcome: outcome.group)
            self._names.update(*(names for _, names, *_ in told))
            for part in (self.sampler, self.parts.selector, *self._scorer.learning):
                if isinstance(part, Observes):
                    part.observe(outcomes)
            if isinstance(self.parts.rollout, Learns):
                self.parts.rollout.learn(heard_of(own for *_, own in told))
            self._counts["steps"] += 1
            self._counts["groups"] += len(outcomes)
            self._counts["rejected"] += sum(not outcome.kept for outcome in outcomes)
            self._counts["refilled"] += sum(of_one for *_, of_one, _ in told)
            figures = step_figures(groups, missing, self._names, first=ranks.rank == 0, left=len(self._left))
            once = float(ranks.rank == 0)
            figures |= {name: (value * once, once) for name, value in stands.items()}
            return Batch(
                rows=rows,
                groups=[group.episodes for group in groups],
                decisions=[group.decisions() for group in groups],
                rejected=sum(not group.kept for group in groups),
                refilled=refilled,
                missing=missing,
                seconds=clock.seconds,
                figures=figures,
                outcomes=outcomes,
            )

    def close(self) -> None:
        """Close the connections to the other processes."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def state_dict(self) -> dict[str, Any]:
        """Return the sampler's cursor, the states of parts that have one, and counters, as JSON can hold them."""
        parts = {name: part.state_dict() for name, part in self._stateful()}
        left = [one.state_dict() for one in self._left]
        return {"sampler": self.sampler.state_dict(), "parts": parts, "counts": dict(self._counts), "left": left}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned."""
        self.sampler.load_state_dict(state["sampler"])
        for name, part in self._stateful():
            if name in state["parts"]:
                part.load_state_dict(state["parts"][name])
        self._counts.update(state["counts"])
        self._left = [LeftOff.from_state(one) for one in state["left"]]

    @property
    def counts(self) -> dict[str, int]:
        """Steps, groups, rejected and refilled groups so far, over all processes."""
        return dict(self._counts)

    def _stateful(self) -> Iterator[tuple[str, Any]]:
        parts = self.parts
        named = {"rollout": parts.rollout, "selector": parts.selector, "advantage": parts.advantage}
        named |= {f"reward.{component.name}": component.score for component in parts.rewards}
        return ((name, part) for name, part in named.items() if hasattr(part, "state_dict"))

    def _play_rounds(self, step: int, ranks: Together, clock: Clock) -> tuple[list[Group], int]:
        """Play until there are enough groups; return this process's, and how many are missing on all together."""
        groups: list[Group] = []
        begun, kept = 0, 0
        for number in range(self._refill + 1):
            left = self._left if number == 0 else []
            wanted = self._begin if number == 0 else self._wanted - kept
            # As many on each process, so that none waits for another longer than for one group more.
            each = -(-max(wanted - len(left), 0) // ranks.size)
            starts = self.sampler.draw(each * ranks.size)
            first = begun + len(left) + ranks.rank * each
            own = [_Begun(one.start, one.place(begun + at), one.steps) for at, one in enumerate(left)]
            own = own[ranks.rank :: ranks.size]
            fresh = starts[ranks.rank * each :][:each]
            own += [_Begun(start, Place(first + at, (step, first + at))) for at, start in enumerate(fresh)]
            begun += len(left) + len(starts)
            waits = self._tail == "wait" or number > 0 or any(one.steps >= MOST_STEPS for one in left)
            groups += self._play_round(step, number, own, ranks, clock, None if waits else self._wanted)
            accepted = sorted(chain.from_iterable(ranks.gather([group.number for group in groups if group.kept])))
            kept = len(accepted)
            if kept >= self._enough:
                break
        surplus, missing = set(accepted[self._wanted :]), max(0, self._wanted - kept)
        copied = self._copied(accepted, missing, step) if kept >= self._enough else Counter[int]()
        for group in groups:
            group.copies = copied[group.number]
            if group.number in surplus:
                group.drop(SURPLUS)
        return groups, missing - copied.total()

    def _copied(self, accepted: Sequence[int], missing: int, step: int) -> Counter[int]:
        """How often each accepted group replaces a missing one; no group twice before each did once."""
        # The same on every process: each copies its own.
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, step], spawn_key=(3,)))
        return Counter(rng.choice(accepted, missing, replace=missing > len(accepted)).tolist())

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Let no other process wait in a round for this one, if it fails."""
        try:
            yield
        except Exception as error:
            if self._queue is not None:
                self._queue.fail(error)
            raise

    def _connected(self, ranks: Together) -> EpisodeQueue:
        """The queue, which all processes connect to in their first step."""
        if self._queue is None:
            wire = Wire.connect(ranks) if self._one_queue else Wire()
            self._queue = EpisodeQueue(self.player, wire, self._limits, patience_s=self._patience_s)
        return self._queue

    def _play_round(
        self, step: int, number: int, own: Sequence[_Begun], ranks: Together, clock: Clock, enough: int | None
    ) -> list[Group]:
        """Play groups of this process; where ``enough`` have ended on all of them, leave off the others."""
        starts = [begun.start for begun in own]

        async def play_and_score(queue: Round) -> tuple[GroupPlay, list[list[Episode]]]:
            selector = self.parts.selector
            settled = None
            if self._early_stop and isinstance(selector, Settles):
                settled = lambda group: selector.settled(group, self._keep)  # noqa: E731
            play = GroupPlay(
                self.player,
                seed=self._seed,
                step=step,
                first=own[0].place.number if own else 0,
                size=self._size,
                settled=settled,
                places=[begun.place for begun in own],
                queue=queue,
                carries=self._tail == "carry",
                problems=self._problems,
                judge=self._judge,
            )
            with clock.of("rollout"):
                played = [list(group) for group in await self.parts.rollout(starts, self._size, play)]
            if len(played) != len(starts):
                raise ConfigurationError(
                    f"The rollout part {type(self.parts.rollout).__name__} returned {len(played)} groups for "
                    f"{len(starts)} starts; it must return one for each, in their order."
                )
            play.name_parents(played)
            self.player.check([episode for group in played for episode in group])
            with clock.of("reward"):
                for at, group in enumerate(played):
                    if play.left_off(at) is None or self._tail != "carry":
                        await self._scorer.score(group, play)
            return play, played

        queue = self._connected(ranks)
        try:
            play, episodes = run_blocking(lambda: queue.run(play_and_score, groups=enough))
        except AbandonedError:
            ranks.gather(None)  # it says why
            raise
        if self._on_groups is not None:
            self._on_groups(episodes, number)
        groups, left = [], []
        with clock.of("select"):
            for at, (begun, group) in enumerate(zip(own, episodes, strict=True)):
                place = play.left_off(at)
                if place is None:
                    groups.append(self._selected(step, number, begun, group))
                elif self._tail == "carry":
                    left.append(LeftOff(begun.start, place.drawn, begun.steps + 1, place.ended, place.begun))
                else:
                    reasons = ["cancelled" if episode.cancelled else TAIL for episode in group]
                    groups.append(Group(begun.place.number, number, begun.start, group, [], reasons))
        if self._tail == "carry" and number == 0:
            # The same on every process, so that any number of them can go on with it.
            self._left = list(chain.from_iterable(ranks.gather(left)))
        return groups

    def _selected(self, step: int, number: int, begun: _Begun, group: list[Episode]) -> Group:
        # A generator of its own, so that what a selector draws for one group does not affect the others.
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, step, begun.place.number], spawn_key=(2,)))
        least = getattr(self.parts.advantage, "least", 1)
        rollout = self.parts.rollout
        apart = rollout.apart(group) if isinstance(rollout, Apart) else []
        kept, reasons = select(group, self.parts.selector, self._keep, rng, least, apart)
        weighed = weigh(group, self.parts.selector, self._keep, apart)
        return Group(begun.place.number, number, begun.start, group, kept, reasons, apart=apart, weighed=weighed)

    def _advantages(self, groups: Sequence[Group], missing: int, ranks: Together) -> list[list[float | FloatArray]]:
        """The advantages of each group's kept episodes; every process computes them, one without a group too."""
        part = self.parts.advantage
        training = [group for group in groups if group.kept for _ in range(1 + group.copies)]
        last = max((group.round for group in groups), default=0)
        # Groups that were rejected and not replaced belong to the batch, though they do not train.
        beside = [group for group in groups if not group.kept and group.round == last] if missing else []
        others = [_usable(group.episodes)[: self._keep] for group in beside] if getattr(part, "of_batch", False) else []
        compared = [*(group.chosen for group in training), *others]
        needs = getattr(part, "needs", ())
        if self._measure is not None and needs:
            self._measure(part, compared)
        values = part(compared, ranks)
        check_advantages(part, compared, values)
        found = dict(zip((group.number for group in training), paid_by_turn(compared, values), strict=False))
        for group in training:
            group.advantages = [
                as_number(value, episode) for value, episode in zip(found[group.number], group.chosen, strict=True)
            ]
        return [found.get(group.number, []) for group in groups]

    def _rows(self, group: Group, advantages: Sequence[float | FloatArray]) -> list[Row]:
        rollout = self.parts.rollout
        rows: list[Row] = []
        for episode, advantage in zip(group.chosen, advantages, strict=True):
            rows += rollout.rows(episode, advantage) if isinstance(rollout, MakesRows) else [Row.of(episode, advantage)]
        rows += [Row.of(group.episodes[position], 0.0) for position in group.apart]
        for row in rows:
            row.columns.setdefault("accuracy", group.accuracy)
            row.columns.setdefault("correct", float(row.episode.correct))
            row.columns.setdefault("off_policy", float(row.episode.off_policy))
        return rows


def _usable(group: Sequence[Episode]) -> list[Episode]:
    return [episode for episode in group if episode.available and episode.policy_tokens]
