"""``Collector``: plays, scores and selects the episodes of a step, and makes the rows to train on; without torch.

A step draws the starts of its groups, the same in every process. Each process plays and scores its share of the groups,
selects episodes, replaces rejected groups (by new groups in a limited number of rounds, or by copies of other groups),
computes the advantages of all kept groups together, makes rows, and reports the results of all groups to the sampler,
the selector and other adaptive parts.

A group belongs to one process until its rows are made. Any process with room may play its episodes and return them
(``trainers/queue``). Apart from these episodes, processes exchange only results and counts. If one process raises an
error, all processes raise an error.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from rstar2_env.core.blocking import run_blocking
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.progress import progress
from rstar2_env.core.row import FloatArray, Row
from rstar2_env.core.telemetry import phase_span

from ..advantages.base import as_number, check_advantages
from ..options.parts import Parts
from ..queue.local import LocalQueue, LocalRound
from ..queue.shared import AbandonedRoundError, make_queue
from ..ranks import ONE, Together
from ..rollouts.base import as_rollout
from ..samplers.base import figures_of
from ..selectors.base import AdaptsToResults, Settles
from .batch import Batch, PlayedGroup
from .clock import Clock
from .collector_parts import StepOptions, StepServices, check_parts
from .group_play import GroupPlace, GroupPlay
from .mask_metrics import mask_metrics
from .scoring import paid_by_turn, scorer_of
from .selection import importance_weights, select, weigh
from .step_group import MOST_STEPS, StepGroup
from .step_metrics import names_in, step_metrics

SURPLUS = "surplus"
"""Reason for not training on a group that the last refill round played beyond ``problems_per_step``."""

TAIL = "tail"
"""Reason for not training on a group that ended too late for its step (see ``StepOptions.tail``)."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step: its number, the processes, and its measured durations."""

    number: int
    ranks: Together
    clock: Clock


class Collector:
    """Collects the rows of one step after another; every process of a run has one, and all collect together.

    Args:
        parts: Rollout, reward components, selector and advantage.
        options: Options of a step, such as the number of groups.
        services: Player, sampler, processes, and optional services.

    Attributes:
        counts: Number of steps, groups, rejected groups and refilled groups so far, over all processes.

    Raises:
        ConfigurationError: Parts, options and services do not fit together; see ``check_parts``.
    """

    def __init__(self, parts: Parts, options: StepOptions, services: StepServices) -> None:
        self._rollout = as_rollout(parts.rollout)
        check_parts(parts, self._rollout, options, services)
        self.parts, self.player, self.sampler = parts, services.player, services.sampler
        self._options, self._services = options, services
        self._size = options.group_size * options.oversample
        self._queue: LocalQueue | None = None
        self._carried: list[StepGroup] = []
        self._scorer = scorer_of(parts.rewards, services.judge, services.problems)
        self.counts = dict.fromkeys(("steps", "groups", "rejected", "refilled"), 0)
        self._names: set[tuple[str, str]] = set()

    def collect(self, step: int) -> Batch:
        """Play, score and select the episodes of a step.

        Args:
            step: Number of steps collected so far, which seeds the random draws. One step may have several optimizer
                updates.

        Returns:
            The rows and the groups of this process.

        Raises:
            OtherProcessError: Another process failed.
        """
        clock = Clock()
        sampled = figures_of(self.sampler)
        with phase_span("collect", step + 1), Together(self._services.ranks) as ranks, self._failing():
            groups, missing = self._play_rounds(_Step(step, ranks, clock))
            with clock.measure("advantage"):
                advantages = self._advantages(groups, missing, ranks)
                rows = [
                    row
                    for group, values in zip(groups, advantages, strict=True)
                    for copy in range(1 + group.copies)
                    for row in self._rows(group, values, copy)
                ]
            refilled = sum(group.round > 0 for group in groups)
            reports = [(group.number, self._rollout.report(group.episodes)) for group in groups]
            spent = clock.seconds["rollout"]
            shared = ranks.gather(([group.result() for group in groups], names_in(groups), refilled, spent, reports))
            times = [seconds for *_, seconds, _ in shared]
            results = sorted(chain.from_iterable(own for own, *_ in shared), key=lambda result: result.group)
            self._names.update(*(names for _, names, *_ in shared))
            for part in (self.sampler, self.parts.selector, *self._scorer.learning):
                if isinstance(part, AdaptsToResults):
                    part.observe(results)
            reported = sorted(chain.from_iterable(own for *_, own in shared), key=lambda pair: pair[0])
            self._rollout.update([report for _, report in reported if report is not None])
            self.counts["steps"] += 1
            self.counts["groups"] += len(results)
            self.counts["rejected"] += sum(not result.kept for result in results)
            self.counts["refilled"] += sum(count for _, _, count, *_ in shared)
            figures = step_metrics(groups, missing, self._names, first=ranks.rank == 0, left=len(self._carried))
            once = float(ranks.rank == 0)
            figures |= {name: (value * once, once) for name, value in sampled.items()}
            stop_ids = getattr(getattr(self.player, "chat", None), "stop_ids", ())
            turn_tokens = getattr(getattr(self.player, "budget", None), "turn_tokens", None)
            figures |= mask_metrics(rows, stop_ids, turn_tokens)
            return Batch(
                rows=rows,
                groups=[group.episodes for group in groups],
                decisions=[group.decisions() for group in groups],
                rejected=sum(not group.kept for group in groups),
                refilled=refilled,
                missing=missing,
                seconds=clock.seconds,
                slowest=max(times),
                slowest_process=times.index(max(times)),
                figures=figures,
                results=results,
            )

    def close(self) -> None:
        """Close the connections to the other processes."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def state_dict(self) -> dict[str, Any]:
        """Return the states of sampler and parts, the groups carried over, and the counters, as JSON values."""
        return {
            "sampler": self.sampler.state_dict(),
            "parts": {name: part.state_dict() for name, part in self._stateful()},
            "counts": dict(self.counts),
            "left": [group.state_dict() for group in self._carried],
            "names": sorted(self._names),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned."""
        self.sampler.load_state_dict(state["sampler"])
        for name, part in self._stateful():
            if name in state["parts"]:
                part.load_state_dict(state["parts"][name])
        self.counts.update(state["counts"])
        self._carried = [StepGroup.from_state(group) for group in state["left"]]
        self._names = {(kind, name) for kind, name in state.get("names", ())}

    def _stateful(self) -> Iterator[tuple[str, Any]]:
        parts = self.parts
        named = {"rollout": parts.rollout, "selector": parts.selector, "advantage": parts.advantage}
        named |= {f"reward.{component.name}": component.score for component in parts.rewards}
        return ((name, part) for name, part in named.items() if hasattr(part, "state_dict"))

    def _play_rounds(self, step: _Step) -> tuple[list[PlayedGroup], int]:
        """Play rounds until there are enough groups, or until no refill round is left.

        Returns:
            This process's groups, and the number of groups that are missing over all processes.
        """
        options, ranks = self._options, step.ranks
        target = options.problems_per_step
        enough = target if options.replace is None else options.replace * target
        groups: list[PlayedGroup] = []
        begun, kept = 0, 0
        for number in range(options.refill + 1):
            carried = self._carried if number == 0 else []
            wanted = target - kept
            if number == 0 and options.tail != "wait":
                wanted = math.ceil(target * (1 + options.spare))
            # The same number of groups in each process, so that none waits while another plays several more groups.
            each = -(-max(wanted - len(carried), 0) // ranks.size)
            starts = self.sampler.draw(each * ranks.size)
            first = begun + len(carried) + ranks.rank * each
            own = [replace(one, place=replace(one.place, number=begun + at)) for at, one in enumerate(carried)]
            own = own[ranks.rank :: ranks.size]
            for at, start in enumerate(starts[ranks.rank * each :][:each], first):
                own.append(StepGroup(start, GroupPlace(at, (step.number, at))))
            begun += len(carried) + len(starts)
            waits = options.tail == "wait" or number > 0 or any(one.steps >= MOST_STEPS for one in carried)
            groups += self._play_round(step, number, own, None if waits else target)
            accepted = sorted(chain.from_iterable(ranks.gather([group.number for group in groups if group.kept])))
            kept = len(accepted)
            if kept >= enough:
                break
        surplus, missing = set(accepted[target:]), max(0, target - kept)
        copied = self._copied(accepted, missing, step.number) if kept >= enough else Counter[int]()
        for group in groups:
            group.copies = copied[group.number]
            if group.number in surplus:
                group.drop(SURPLUS)
        return groups, missing - copied.total()

    def _copied(self, accepted: Sequence[int], missing: int, step: int) -> Counter[int]:
        """Draw the accepted groups whose copies replace missing groups.

        A group is copied more than once only if more groups are missing than were accepted.

        Args:
            accepted: Numbers of the accepted groups of all processes.
            missing: Number of missing groups.
            step: Number of the step, which seeds the draw.

        Returns:
            The number of copies of each drawn group, by the group's number.
        """
        # The draw is the same in every process; each process copies its own groups.
        rng = np.random.default_rng(np.random.SeedSequence([self._options.seed, step], spawn_key=(3,)))
        return Counter(rng.choice(accepted, missing, replace=missing > len(accepted)).tolist())

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Context manager that reports an error of this process to all other processes, which then stop waiting."""
        try:
            yield
        except Exception as error:
            if self._queue is not None:
                self._queue.fail(error)
            raise

    def _connected(self, ranks: Together) -> LocalQueue:
        """Return the queue of the run; the first call creates it and, with ``one_queue``, connects the processes."""
        if self._queue is None:
            services, options = self._services, self._options
            self._queue = make_queue(
                services.player,
                ranks if options.one_queue else ONE,
                services.limits,
                timeout_s=options.timeout_s,
            )
        return self._queue

    def _play_round(self, step: _Step, number: int, own: Sequence[StepGroup], enough: int | None) -> list[PlayedGroup]:
        """Play and select groups of this process.

        Args:
            step: The step.
            number: Number of the refill round; 0 before any refill.
            own: The groups to play.
            enough: Stop the other groups when this number of groups has ended over all processes; ``None`` plays all.
        """
        queue = self._connected(step.ranks)
        try:
            play, episodes = run_blocking(lambda: queue.run(partial(self._play_and_score, step, own), groups=enough))
        except AbandonedRoundError:
            step.ranks.gather(None)  # raises the error of the process that failed
            raise
        groups, carried = [], []
        carries = self._options.tail == "carry"
        with step.clock.measure("select"):
            for at, (begun, group) in enumerate(zip(own, episodes, strict=True)):
                place = play.carried_over(at)
                if place is None:
                    groups.append(self._selected(step.number, number, begun, group))
                elif carries:
                    carried.append(replace(begun, place=place, steps=begun.steps + 1))
                else:
                    reasons = ["cancelled" if episode.cancelled else TAIL for episode in group]
                    groups.append(PlayedGroup(begun.place.number, number, begun.start, group, [], reasons))
        if carries and number == 0:
            # The same in every process, so that a run can resume with another number of processes.
            self._carried = list(chain.from_iterable(step.ranks.gather(carried)))
        return groups

    async def _play_and_score(
        self, step: _Step, own: Sequence[StepGroup], queue: LocalRound
    ) -> tuple[GroupPlay, list[list[Episode]]]:
        """Play this process's groups in a round of the queue; score all except groups carried over to the next step."""
        options, services = self._options, self._services
        carries = options.tail == "carry"
        play = GroupPlay(
            services.player,
            seed=options.seed,
            step=step.number,
            first=own[0].place.number if own else 0,
            size=self._size,
            settled=self._settled if options.early_stop else None,
            places=[begun.place for begun in own],
            queue=queue,
            carries=carries,
            problems=services.problems,
            judge=services.judge,
        )
        starts = [begun.start for begun in own]
        with step.clock.measure("rollout"), progress("playing") as play.report:
            play.report(0, len(starts) * self._size)
            played = [list(group) for group in await self._rollout(starts, self._size, play)]
        if len(played) != len(starts):
            raise ConfigurationError(
                f"The rollout part {type(self._rollout).__name__} returned {len(played)} groups, but it "
                f"was called with {len(starts)} starts: it must return one group for each start, in the "
                "order of the starts."
            )
        play.name_parents(played)
        services.player.check([episode for group in played for episode in group])
        with step.clock.measure("reward"), progress("scoring episodes") as report:
            for at, group in enumerate(played):
                if play.carried_over(at) is None or not carries:
                    await self._scorer.score(group, play)
                report(at + 1, len(played))
        # Episodes that a judge did not score are unavailable too.
        services.player.check([episode for group in played for episode in group])
        return play, played

    def _settled(self, group: Sequence[Episode | None]) -> bool:
        """Return whether the selector needs no more episodes of a group."""
        selector = self.parts.selector
        assert isinstance(selector, Settles)  # check_parts
        return selector.settled(group, self._options.group_size)

    def _selected(self, step: int, number: int, begun: StepGroup, group: list[Episode]) -> PlayedGroup:
        # A separate generator, so that the draws for one group do not affect the others.
        entropy = np.random.SeedSequence([self._options.seed, step, begun.place.number], spawn_key=(2,))
        keep, selector = self._options.group_size, self.parts.selector
        least = getattr(self.parts.advantage, "least", 1)
        apart = self._rollout.apart(group)
        kept, reasons = select(group, selector, keep, np.random.default_rng(entropy), least, apart)
        return PlayedGroup(
            begun.place.number,
            number,
            begun.start,
            group,
            kept,
            reasons,
            apart=apart,
            weighed=weigh(group, selector, keep, apart),
            weights=importance_weights(group, selector, keep, kept, apart),
        )

    def _advantages(
        self, groups: Sequence[PlayedGroup], missing: int, ranks: Together
    ) -> list[list[float | FloatArray]]:
        """Return the advantages of each group's kept episodes; every process must call it, even without a group.

        Args:
            groups: The groups of this process.
            missing: Number of missing groups, over all processes.
            ranks: The processes.
        """
        part = self.parts.advantage
        training = [group for group in groups if group.kept for _ in range(1 + group.copies)]
        last = max((group.round for group in groups), default=0)
        # Rejected groups that were not replaced belong to the batch, though they are not trained on.
        rejected = [group for group in groups if not group.kept and group.round == last] if missing else []
        if not getattr(part, "of_batch", False):
            rejected = []
        others = [_usable(group.episodes)[: self._options.group_size] for group in rejected]
        compared = [*([group.episodes[at] for at in group.compared] for group in training), *others]
        needs: Collection[str] = getattr(part, "needs", ())
        if self._services.measure is not None and needs:
            self._services.measure(part, compared)
        values = part(compared, ranks)
        check_advantages(part, compared, values)
        paid = paid_by_turn(compared, values)
        found = {group.number: group.weighted(own) for group, own in zip(training, paid, strict=False)}
        for group in training:
            group.advantages = [
                as_number(value, episode) for value, episode in zip(found[group.number], group.chosen, strict=True)
            ]
        return [found.get(group.number, []) for group in groups]

    def _rows(self, group: PlayedGroup, advantages: Sequence[float | FloatArray], copy: int) -> list[Row]:
        rows = [
            row
            for episode, advantage in zip(group.chosen, advantages, strict=True)
            for row in self._rollout.rows(episode, advantage)
        ]
        rows += [Row.of(group.episodes[position], 0.0) for position in group.apart]
        for row in rows:
            row.copy = copy
            row.columns.setdefault("accuracy", group.accuracy)
            row.columns.setdefault("correct", float(row.episode.correct))
            row.columns.setdefault("off_policy", float(row.episode.off_policy))
        return rows


def _usable(group: Sequence[Episode]) -> list[Episode]:
    return [episode for episode in group if episode.available and episode.policy_tokens]
