"""A run that is resumed collects what the unbroken one does, and the sampler hears of every group."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_run import MIXED, PROBLEMS, SAME, by_group, collector

from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.samplers.uniform import Uniform


class Remembers(Uniform):
    """A sampler that draws the problems with the fewest successes so far; ties by their order."""

    def __init__(self, ids, seed=0):
        super().__init__(ids, seed)
        self.successes: dict[str, int] = dict.fromkeys(ids, 0)
        self.heard: list[Any] = []

    def draw(self, n):
        starts = super().draw(n)
        hardest = sorted(self.successes, key=lambda name: (self.successes[name], name))[:n]
        return [type(start)(start.seed, {"problem_id": name}) for start, name in zip(starts, hardest, strict=True)]

    def observe(self, outcomes):
        self.heard.append(outcomes)
        for outcome in outcomes:
            self.successes[outcome.start.problem_id] += outcome.successes

    def state_dict(self):
        return {**super().state_dict(), "successes": dict(self.successes)}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.successes = dict(state["successes"])


class Moody:
    """A selector with a state: it rejects every third group that it sees."""

    def __init__(self):
        self.seen = 0

    def __call__(self, group, keep, rng):
        self.seen += 1
        return [] if self.seen % 3 == 0 else list(range(keep))

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


@pytest.mark.parametrize("at", [1, 2, 5])
def test_a_resumed_run_collects_what_the_unbroken_one_does(at):
    def make():
        return collector(sampler=Remembers(PROBLEMS), selector=Moody(), refill=2)

    whole = make()
    unbroken, states = [], []
    for step in range(7):
        states.append(json.loads(json.dumps(whole.state_dict())))
        unbroken.append([row.completion_ids for row in whole.collect(step).rows])
    resumed = make()
    resumed.load_state_dict(states[at])
    assert [[row.completion_ids for row in resumed.collect(step).rows] for step in range(at, 7)] == unbroken[at:]
    assert resumed.state_dict() == whole.state_dict()
    assert resumed.counts["steps"] == 7


def test_the_sampler_hears_how_the_groups_of_all_processes_went():
    def work(ranks):
        sampler = Remembers(PROBLEMS)
        player = by_group([MIXED, [1.0, "unavailable", 0.0, 0.0], SAME, ["unavailable"] * 4])
        collector(player, ranks=ranks, sampler=sampler).collect(0)
        return sampler.heard

    first, second = in_processes(2, work)
    assert first == second
    ((a, b, c, d),) = first
    assert [one.group for one in (a, b, c, d)] == [0, 1, 2, 3]
    assert [one.start.problem_id for one in (a, b, c, d)] == sorted(PROBLEMS)[:4]
    assert [(one.episodes, one.successes, one.kept) for one in (a, b, c, d)] == [
        (4, 2, 4),
        (3, 1, 3),
        (4, 0, 0),
        (0, 0, 0),
    ]
    assert a.advantage == pytest.approx(0.8660, abs=1e-3)
    assert (b.reward, c.advantage, d.reward) == (pytest.approx(1 / 3), 0.0, 0.0)
    assert (a.task, d.task) == ("coins", "")
