"""A proof runs every part with the code that accelerators run, and ends in time whatever a part does."""

from __future__ import annotations

import math
import re
import time
from copy import deepcopy
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="a proof needs torch")

from rstar2_env.core.errors import UnknownNameError
from rstar2_env.rollout import TransformersEngine
from rstar2_env.trainers.plan.assumptions import Assumptions
from rstar2_env.trainers.plan.device import DEVICES
from rstar2_env.trainers.prove import engines, part
from rstar2_env.trainers.prove.findings import PartFinding, ProofFigure, judged, planned_figure
from rstar2_env.trainers.prove.run import prove
from rstar2_env.trainers.prove.scale import random_model, scale


def test_kernels_and_speed_are_measured_in_processes_of_their_own() -> None:
    kernels, speed = prove(timeout_s=300, parts=["speed", "kernels"])
    assert (kernels.part, kernels.level) == ("kernels", "ok"), kernels.note
    assert len(kernels.figures) == 4
    assert (speed.part, speed.level) == ("speed", "ok"), speed.note
    assert all(figure.value > 0 for figure in speed.figures)


@pytest.mark.slow
def test_a_sharded_model_has_the_loss_of_a_whole_one_and_learns() -> None:
    (found,) = prove(timeout_s=300, parts=["sharded"])
    assert found.level == "ok", found.note
    assert found.note.startswith("2 processes")
    assert {figure.name for figure in found.figures if figure.must} == {
        "error of a sum over all processes",
        "loss of sharded minus loss of whole weights, nats",
        "change of the loss in the steps, nats",
    }


@pytest.mark.slow
def test_an_engine_plays_with_old_and_with_new_weights() -> None:
    (found,) = prove(timeout_s=300, parts=["engine"])
    assert found.level == "ok", found.note


def test_an_engine_that_keeps_its_old_weights_is_a_problem() -> None:
    policy = random_model(scale(), None).eval()
    found = engines._played("engine", TransformersEngine(deepcopy(policy), max_rows=scale().rows), policy, None)
    assert found.level == "problem"
    assert "trainer's after a weight sync" in found.note
    rates = {figure.name: figure.value for figure in found.figures if "per second" in figure.name}
    assert list(rates) == ["tokens read per second", "tokens generated per second"]
    assert min(rates.values()) > 0


def test_the_rates_of_vllm_are_expected_near_those_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, sizes = random_model(scale(), None), scale()
    assert engines._planned_rates(policy) == (None, None), "no device is known"
    monkeypatch.setattr(engines, "known_device", lambda: DEVICES["h100"])
    # The fixed seconds of a decoding step are nearly all that a tiny model takes.
    step = Assumptions().decode_step_s
    read, generated = sizes.rows * sizes.turn / step, sizes.rows / step
    assert engines._planned_rates(policy) == pytest.approx((read, generated), rel=0.05)
    figure = planned_figure("a rate", 3.0, 4.0)
    assert (figure.low, figure.high, figure.must) == (2.0, 32.0, False)
    assert not planned_figure("a rate", 3.0, None).expected


@pytest.mark.proof
def test_vllm_plays_with_old_and_with_new_weights() -> None:
    pytest.importorskip("vllm", reason="the part needs vLLM")
    (found,) = prove(timeout_s=600, parts=["vllm"])
    assert found.level == "ok", found.note


@pytest.mark.slow
def test_calls_are_replayed_in_the_sandbox() -> None:
    (found,) = prove(timeout_s=300, parts=["sandbox"])
    assert found.level == "ok", found.note


@pytest.mark.train
def test_a_cold_start_and_ten_steps_are_trained() -> None:
    (found,) = prove(timeout_s=360, parts=["grpo"])
    assert found.level == "ok", found.note
    assert (found.figures[0].name, found.figures[0].value) == ("steps", 10)
    assert not any(math.isnan(figure.value) for figure in found.figures)


def program(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "a_part.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return "a_part"


HANGS = """
import subprocess, sys, time
sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
started = [subprocess.Popen(sleeps, start_new_session=alone) for alone in (False, True)]
print("started", *(one.pid for one in started), flush=True)
time.sleep(600)
"""
"""A part that starts two processes, one in a session of its own as torchrun does, and waits."""


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_part_that_hangs_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    hanging, later = prove(timeout_s=8, parts=["kernels", "speed"], program=program(tmp_path, HANGS, monkeypatch))
    assert time.monotonic() - began < 60
    assert [hanging.level, later.level] == ["late", "late"]
    started = [int(pid) for pid in re.findall(r"started (\d+) (\d+)", hanging.note)[0]]
    while any(map(runs, started)) and time.monotonic() - began < 60:
        time.sleep(0.05)
    assert not any(map(runs, started))


def test_a_part_that_crashes_is_a_problem_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crashes = program(tmp_path, "import os\nprint('no kernel image', flush=True)\nos._exit(9)\n", monkeypatch)
    (found,) = prove(timeout_s=60, parts=["kernels"], program=crashes)
    assert found.level == "problem"
    assert "exit code 9. no kernel image" in found.note


def test_a_part_whose_packages_are_absent_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(part.PARTS, "grpo", ("learning", ("torch", "no_such_package")))
    assert part.run_part("grpo", None) == PartFinding("grpo", "skipped", "no_such_package not installed")


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="kernel"):
        prove(parts=["kernel"])


@pytest.mark.parametrize(
    ("value", "must", "level"),
    [(0.5, True, "ok"), (2.0, True, "problem"), (2.0, False, "ok"), (math.nan, True, "problem")],
)
def test_a_figure_out_of_its_range_is_a_problem_if_it_must_be_inside(value: float, must: bool, level: str) -> None:
    found = judged("kernels", "ran", [ProofFigure("an error", value, None, 1.0, "exact", must=must)])
    assert found.level == level
    assert PartFinding.from_record(found.record()).level == level


BARE = """
import sys
from importlib.machinery import PathFinder


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        absent = name.partition(".")[0] in ("trl", "vllm", "datasets", "deepspeed")
        return None if absent else PathFinder.find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


@pytest.mark.proof
def test_a_bare_image_with_torch_transformers_and_peft_runs_all_but_what_needs_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BARE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = {one.part: one for one in prove(timeout_s=360, parts=["engine", "sharded", "grpo", "vllm"])}
    assert {name: one.level for name, one in found.items()} == {
        "engine": "ok",
        "sharded": "ok",
        "grpo": "skipped",
        "vllm": "skipped",
    }, [one.note for one in found.values()]
    assert found["grpo"].note == "trl, datasets not installed"
    assert found["vllm"].note == "vllm not installed"
