"""``mopps``: posteriors after each step, and the candidates whose drawn rate is nearest to the target."""

from __future__ import annotations

import json

import pytest
from outcomes import steps, went

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.problems import load_problems
from rstar2_env.trainers.samplers.mopps import Mopps

IDS = [f"p{n}" for n in range(40)]


@pytest.mark.parametrize(("decay", "first", "second"), [(1.0, (4, 6), (5, 13)), (0.5, (4, 6), (3.5, 10.5))])
def test_the_golden_posterior(decay, first, second):
    sampler = Mopps(IDS, decay=decay)
    for successes, expected in ((3, first), (1, second)):
        sampler.observe([went("p7", successes)])
        assert (sampler.alpha[7], sampler.beta[7]) == pytest.approx(expected)
    assert sampler.alpha.sum() - sampler.alpha[7] == 39


def test_a_single_episode_moves_one_counter_only():
    sampler = Mopps(IDS)
    sampler.observe([went("p0", 1, 1), went("p1", 0, 1), went("p2", 0, 0)])
    assert (sampler.alpha[:3].tolist(), sampler.beta[:3].tolist()) == ([2, 1, 1], [1, 2, 1])


def test_it_plays_what_is_known_to_be_middling():
    sampler = Mopps(IDS, batch=4)
    sampler.observe([went(name, 500 if at < 4 else 1000 * (at % 2), 1000) for at, name in enumerate(IDS)])
    assert sorted(start.problem_id for start in sampler.draw(4)) == ["p0", "p1", "p2", "p3"]
    sampler = Mopps(IDS, batch=4, target=1.0)
    sampler.observe([went(name, 500 if at < 36 else 1000, 1000) for at, name in enumerate(IDS)])
    assert sorted(start.problem_id for start in sampler.draw(4)) == ["p36", "p37", "p38", "p39"]


def test_only_the_candidates_of_a_step_compete():
    sampler = Mopps(IDS, batch=4, candidates=2)
    sampler.observe([went(name, 500 if at < 4 else 0, 1000) for at, name in enumerate(IDS)])
    drawn = [sorted(start.problem_id for start in sampler.draw(8)) for _ in range(5)]
    assert sorted(name for step in drawn for name in step) == sorted(IDS)


def test_a_refill_goes_on_with_the_next_best_and_repeats_nothing():
    sampler, other = Mopps(IDS, 3, batch=4), Mopps(IDS, 3, batch=4)
    assert sampler.draw(4) + sampler.draw(6) == other.draw(10)
    assert len({start.problem_id for start in Mopps(IDS, 3, batch=4).draw(40)}) == 40


def test_the_band_keeps_the_order_of_the_pass():
    sampler, plain = Mopps(IDS, batch=40, rule="band", low=0.0, high=1.0), Mopps(IDS, batch=40)
    drawn = [start.problem_id for start in sampler.draw(40)]
    assert sorted(drawn) == sorted(IDS)
    assert drawn != [start.problem_id for start in plain.draw(40)]
    sampler = Mopps(IDS, batch=4, rule="band")
    sampler.observe([went(name, 400 if at < 4 else 900, 1000) for at, name in enumerate(IDS)])
    assert {start.problem_id for start in sampler.draw(4)} == {"p0", "p1", "p2", "p3"}


def test_posteriors_may_begin_with_an_evaluation(tmp_path):
    writer = RunWriter(tmp_path / "measured", kind="evaluation")
    writer.begin({})
    writer.held_out(0, [Episode(problem_id="p3", end="answered", correct=n < 2) for n in range(3)])
    sampler = Mopps(IDS, rates=str(tmp_path / "measured"))
    assert (sampler.alpha[3], sampler.beta[3]) == pytest.approx((3, 2))
    assert (sampler.alpha[4], sampler.beta[4]) == (1, 1)


def test_a_checkpoint_between_two_draws_of_a_step_loses_nothing():
    whole = Mopps(IDS, 1, batch=4, candidates=3)
    steps(whole, dict.fromkeys(IDS, 0.5), 3)
    whole.draw(2)
    resumed = Mopps(IDS, 1, batch=4, candidates=3)
    resumed.load_state_dict(json.loads(json.dumps(whole.state_dict())))
    assert resumed.draw(20) == whole.draw(20)


def test_an_unlimited_source_is_a_pool_of_its_problems():
    source = load_problems("arithmetic:level=1")
    names = {start.problem_id for start in Mopps(None, 0, source, pool=20, batch=5).draw(60)}
    assert len(names) == 20
    with pytest.raises(ConfigurationError, match="no source of problems"):
        Mopps()
    with pytest.raises(ConfigurationError, match="target"):
        Mopps(IDS, target=1.5)
    with pytest.raises(ConfigurationError, match="greater than high"):
        Mopps(IDS, low=0.8)
