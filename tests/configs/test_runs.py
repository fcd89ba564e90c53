"""Every run of configs/ trains as it stands, with a tiny model and fewer groups in fewer steps."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from config_runs import FILES, ON_A_CPU, check_run, train_run
from guesser import ENV_OPTIONS, make_guesser, write_problems
from vllm_serve import needs_vllm

pytest.importorskip("trl", reason="this trains: the extra 'train'")
pytestmark = pytest.mark.slow

LAUNCHED = ("vllm_servers",)
"""Runs whose servers `rstar2 launch` starts; see test_launched.py."""
PROOFS = ("paper_stage2", "paper_stage3")
"""Runs that differ from `paper_stage1` in numbers only."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_guesser(tmp_path_factory.mktemp("guesser"))


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_problems(tmp_path_factory.mktemp("problems") / "problems.jsonl")


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """A process for all runs without vLLM."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as shared:
        yield shared


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=[pytest.mark.proof] if file.stem in PROOFS else [])
        for file in FILES
        if file.stem not in LAUNCHED
    ],
)
def test_it_trains(file: Path, model: Path, problems: Path, process: ProcessPoolExecutor, tmp_path: Path) -> None:
    if "vllm" in file.stem:
        needs_vllm()
    own = {
        "model": str(model),
        "output_dir": str(tmp_path / "run"),
        "threads": 1,
        "progress": False,
        "env": {"problems": str(problems), "holdout": 0.25, **ENV_OPTIONS},
        "engine_options": ON_A_CPU.get(file.stem, {}),
    }
    if "vllm" in file.stem:  # in a process of its own: a process can have one vLLM engine at a time
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            record = alone.submit(train_run, file, own).result()
    else:
        record = process.submit(train_run, file, own).result()
    check_run(file, tmp_path / "run", record)
