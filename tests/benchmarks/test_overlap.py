"""What the benchmark of playing ahead makes of what it measured, and that both arms are the same run but for that."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from chain import Service, free_port
from places import SUPPORT


@pytest.fixture(scope="module")
def overlap(benchmark_named):
    return benchmark_named("overlap")


def measured(step_s, *, rollout, train, wall=6):
    """Figures of a run whose steps all take as long."""
    line = {"seconds/rollout": rollout, "seconds/train": train, "rollout/reward": 0.5}
    ends = [10 + step_s * number for number in range(wall)]
    return {"wall": ends, "cpu": [0.5 * end for end in ends], "lines": [line] * wall}


def test_seconds_are_those_of_the_steps_that_count(overlap):
    found = measured(2.0, rollout=1.1, train=0.9)
    found["wall"][0] -= 100.0  # the first steps compile
    found["wall"][-1] += 100.0  # the last one has nothing beside it
    figures = overlap.figures_of(found, ahead=1, server_cpu=6.0)
    assert figures["step_s"] == pytest.approx(2.0)
    assert figures["trainer_cpu_s"] == pytest.approx(1.0)
    assert figures["server_cpu_s"] == pytest.approx(1.0)


def test_the_ratio_is_that_of_neighbours_and_the_load_is_judged_by_the_arm_that_takes_turns(overlap):
    alone = [
        overlap.figures_of(measured(s, rollout=0.55 * s, train=0.44 * s), ahead=0, server_cpu=3) for s in (2, 4, 2)
    ]
    ahead = [overlap.figures_of(measured(s, rollout=1, train=1), ahead=1) for s in (1.2, 2.4, 1.4)]
    found = overlap.summary(alone, ahead)
    assert found["ratio"] == pytest.approx(0.6)
    assert found["balanced"]
    assert found["shares"] == pytest.approx({"rollout": 0.55, "train": 0.44})
    heavy = [overlap.figures_of(measured(2, rollout=1.4, train=0.6), ahead=0, server_cpu=3)] * 3
    assert not overlap.summary(heavy, ahead)["balanced"]


def test_a_curve_is_in_range_where_the_median_of_its_seeds_is(overlap):
    alone = [[0.1] * 3 + [0.5] * 3, [0.3] * 3 + [0.7] * 3]
    assert overlap.curve(alone, [[0.2] * 3 + [0.4] * 3])["inside"] == 0.5
    assert overlap.curve(alone, [[0.2] * 3 + [0.6] * 3])["inside"] == 1.0


@pytest.mark.parametrize(("train", "each"), [(0.2, 1), (1.0, 1), (2.0, 2), (2.6, 3)])
def test_playing_is_made_as_long_as_training(overlap, train, each):
    assert overlap.played_for_each({"seconds/rollout": 1.0, "seconds/train": train}) == each


@pytest.mark.proof
def test_both_arms_run_on_a_server(overlap, tiny_model, tmp_path):
    port = free_port()
    command = [sys.executable, str(SUPPORT / "small_vllm.py"), str(tiny_model), str(port)]
    service = Service("model", command, tmp_path / "log", f"http://127.0.0.1:{port}/health")
    service.start()
    words = overlap.read_words(
        ["--steps", "4", "--problems", "2", "--group", "2", "--tokens", "4", "--oversample", "2"]
    )
    given = SimpleNamespace(**{**vars(words), "model": tiny_model, "folder": tmp_path})
    try:
        service.ready()
        arms = [
            [overlap.arm(given, f"http://127.0.0.1:{port}", service.process.pid, staleness=staleness)]
            for staleness in (0, 1)
        ]
    finally:
        service.kill()
    found = overlap.summary(*arms)
    assert found["ratio"] > 0
    assert len(arms[0][0]["rewards"]) == 4
    assert arms[0][0].get("policy/lag", 0) == 0
    assert arms[1][0].get("policy/lag", 1) == 1
    assert all(one["server_cpu_s"] > 0 for arm in arms for one in arm)
