"""Samplers and selectors that learn: what they are given, what they are told, and what a checkpoint keeps of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

import numpy as np
import pytest
from small_run import SmallPlayer, collector

from rstar2_env.core.options.rules import FromRun
from rstar2_env.problems import load_problems
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers import SAMPLERS, Recipe
from rstar2_env.trainers.options.parts import make_parts
from rstar2_env.trainers.samplers.uniform import Uniform
from rstar2_env.trainers.selectors.keep_all import KeepAll


@dataclass
class Counts:
    """Takes all, and keeps what it is told."""

    told: list[Any] = field(default_factory=list)

    def __call__(self, group, keep, rng):
        return [at for at, episode in enumerate(group) if episode.available][:keep]

    def observe(self, outcomes):
        self.told.append([(one.group, one.deviation) for one in outcomes])

    def state_dict(self):
        return {"told": self.told}

    def load_state_dict(self, state):
        self.told = [[tuple(one) for one in step] for step in state["told"]]


def test_a_selector_is_told_how_the_groups_of_all_processes_went():
    def run(ranks):
        made = collector(selector=Counts(), ranks=ranks, seed=1)
        groups = [group for step in range(2) for group in made.collect(step).groups]
        return made.parts.selector.told, groups

    found = in_processes(2, run)
    assert found[0][0] == found[1][0]
    assert [group for group, _ in found[0][0][0]] == [0, 1, 2, 3]
    rewards = {tuple(e.reward for e in group) for _, groups in found for group in groups}
    deviations = {round(float(np.std(one, ddof=1)), 9) for one in rewards}
    assert {round(value, 9) for step in found[0][0] for _, value in step} == deviations


Batch: TypeAlias = Annotated[int | None, FromRun("rollout.problems_per_step")]


def test_what_a_selector_learned_is_in_the_checkpoint():
    made = collector(selector=Counts(), seed=1)
    made.collect(0)
    kept = json.loads(json.dumps(made.state_dict()))
    resumed = collector(selector=Counts(), seed=1)
    resumed.load_state_dict(kept)
    assert resumed.parts.selector.told == made.parts.selector.told != []


def test_a_sampler_is_given_the_problems_and_the_options_of_the_run_that_it_declares(monkeypatch):
    class Asks(Uniform):
        def __init__(self, ids=None, seed=0, problems=None, batch: Batch = None):
            super().__init__(ids, seed)
            self.given = (problems, batch)

    source = load_problems([{"question": "1+1?", "answer": "2", "id": "one"}])
    parts = make_parts(Recipe("r").configure({"model": "m", "sampler": Asks, "problems_per_step": 6}))
    made = parts.sampler_factory(source, 0)
    assert made.given == (source, 6)
    assert made.draw(1)[0].problem_id == "one"
    assert parts.sampler_factory(None, 0).given == (None, 6)
    chosen = make_parts(Recipe("r").configure({"model": "m", "sampler": {"name": "uniform"}}))
    assert chosen.sampler_factory(source, 0).draw(1)[0].problem_id == "one"
    assert "uniform" in SAMPLERS


@pytest.mark.parametrize("rewards", [[1.0, 0.0, 0.0], ["cancelled", 1.0], ["unavailable", 0.5, 0.0]])
def test_the_deviation_of_an_outcome_is_that_of_the_episodes_that_count(rewards):
    told = []

    class Hears(Uniform):
        def observe(self, outcomes):
            told.extend(outcomes)

    turn = iter(rewards * 9)
    player = SmallPlayer(lambda problem, group, rng: next(turn))
    collector(player, sampler=Hears(None), selector=Counts(), problems_per_step=1, group_size=len(rewards)).collect(0)
    counted = [value for value in rewards if not isinstance(value, str)]
    assert told[0].deviation == pytest.approx(np.std(counted, ddof=1) if len(counted) > 1 else 0.0)


KINDS = load_problems(
    [{"id": f"p{n}", "question": f"{n}?", "answer": "1", "source": "ab"[n % 2], "level": n % 3} for n in range(24)]
)
QUICK = {
    "hard_focus": {"after": 2, "least": 4, "every": 1},
    "unsolved": {"after": 2, "episodes": 4},
    "generated_worlds": {"worlds": ["countdown"], "vary": {"numbers": [3, 4]}, "every": 1, "original": 1},
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_learns_alike_on_any_number_of_processes(name):
    def earns(problem, group, rng):
        number = int(problem[1:]) if problem[1:].isdigit() else sum(map(ord, problem)) % 30
        return float(rng.random() < number / 20) if number < 20 else 1.0

    def run(ranks):
        config = Recipe("r").configure(
            {"model": "m", "sampler": {"name": name, **QUICK.get(name, {})}, "problems_per_step": 4}
        )
        sampler = make_parts(config, shares_weights=True).sampler_factory(KINDS, 3)
        made = collector(SmallPlayer(earns), sampler=sampler, ranks=ranks, selector=KeepAll())
        played = [[group[0].problem_id for group in made.collect(step).groups] for step in range(8)]
        return played, made.state_dict()["sampler"]

    ((alone, learned),) = in_processes(1, run)
    (first, one), (second, other) = in_processes(2, run)
    assert [a + b for a, b in zip(first, second, strict=True)] == alone
    assert one == other == learned
