"""Where a sampler stands, as the metrics of a run have it."""

from __future__ import annotations

import pytest
from outcomes import steps
from small_run import PROBLEMS, collector

from rstar2_env.problems import FixedSource, Problem
from rstar2_env.trainers.samplers.base import figures_of
from rstar2_env.trainers.samplers.curriculum import Curriculum
from rstar2_env.trainers.samplers.difficulty_pool import DifficultyPool
from rstar2_env.trainers.samplers.dump import Dump
from rstar2_env.trainers.samplers.hard_focus import HardFocus
from rstar2_env.trainers.samplers.mopps import Mopps
from rstar2_env.trainers.samplers.potential import Potential
from rstar2_env.trainers.samplers.skill_gap import SkillGap
from rstar2_env.trainers.samplers.stages import Stages
from rstar2_env.trainers.samplers.uniform import Uniform
from rstar2_env.trainers.samplers.unsolved import Unsolved

LEVELS = FixedSource([Problem(f"{level}-{n}", "?", "1", "", {"level": level}) for level in (1, 2) for n in range(4)])
IDS = [problem.id for problem in LEVELS]


def test_kinds_are_told_with_their_shares():
    curriculum = Curriculum(0, LEVELS, window=8)
    assert figures_of(curriculum) == {"sampler/level": 1, "sampler/share/1": 1, "sampler/share/2": 0}
    steps(curriculum, {"1": 1.0}, 2)
    assert figures_of(curriculum) == {"sampler/level": 2, "sampler/share/1": 0, "sampler/share/2": 1}
    stages = Stages(0, LEVELS, by="level", steps=(1,))
    steps(stages, {"1": 0.5, "2": 0.5}, 1)
    assert figures_of(stages) == {"sampler/stage": 2, "sampler/share/1": 0, "sampler/share/2": 1}
    for make in (Dump, SkillGap):
        shares = figures_of(make(0, LEVELS, by="level"))
        assert shares == pytest.approx({"sampler/share/1": 0.5, "sampler/share/2": 0.5})


def test_lists_are_told_with_how_many_problems_may_come():
    pools = DifficultyPool(IDS)
    assert figures_of(pools) == {"sampler/hard": 0, "sampler/normal": 0, "sampler/easy": 0, "sampler/unseen": 8}
    steps(pools, {name: float(name.startswith("2")) for name in IDS}, 1)
    told = figures_of(pools)
    assert told["sampler/unseen"] == 8 - told["sampler/hard"] - told["sampler/easy"]
    assert told["sampler/hard"] + told["sampler/easy"] == 4
    for rate, pool in ((0.0, "hard"), (0.5, "normal"), (1.0, "easy")):
        steps(alike := DifficultyPool(IDS), dict.fromkeys(IDS, rate), 1)
        assert figures_of(alike)[f"sampler/{pool}"] == 4
    assert figures_of(Unsolved(IDS)) == figures_of(HardFocus(IDS)) == {"sampler/problems": 8}
    assert figures_of(Potential(IDS)) == {"sampler/stage": 0, "sampler/problems": 8}
    mopps = Mopps(IDS)
    assert figures_of(mopps) == {"sampler/expected": 0.5}
    steps(mopps, dict.fromkeys(IDS, 1.0), 1)
    assert figures_of(mopps)["sampler/expected"] > 0.5
    assert figures_of(Uniform(IDS)) == {}


def test_after_some_steps_fewer_problems_may_come():
    rates = {name: float(name.startswith("1")) for name in IDS}
    unsolved = Unsolved(IDS, after=2)
    steps(unsolved, rates, 2)
    assert figures_of(unsolved) == {"sampler/problems": 4}
    hard = HardFocus(IDS, after=2, least=2)
    steps(hard, rates, 2)
    assert figures_of(hard) == {"sampler/problems": 4}
    potential = Potential(IDS, stages=4)
    steps(potential, rates, 2)
    assert figures_of(potential) == {"sampler/stage": 1, "sampler/problems": 2}
    gap = SkillGap(0, LEVELS, by="level", every=1)
    steps(gap, {"1": 1.0, "2": 0.0}, 1)
    assert figures_of(gap) == {"sampler/share/1": 0, "sampler/share/2": 1}


def test_a_step_logs_where_the_sampler_stood_when_it_began():
    collecting = collector(sampler=DifficultyPool(PROBLEMS))
    first, second = collecting.collect(0).figures, collecting.collect(1).figures
    assert first["sampler/unseen"] == (len(PROBLEMS), 1)
    seen = len({problem for _, _, problem in collecting.player.played[:16]})
    assert second["sampler/unseen"] == (len(PROBLEMS) - seen, 1)
