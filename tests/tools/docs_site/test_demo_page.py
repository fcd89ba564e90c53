"""The recorded runs of the site's page: what an archive keeps, and what it must not contain."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import demo_page
import pytest
from made_runs import MadeRun, write_training
from PIL import Image
from results import sources

from rstar2_env.diagnosis import diagnose


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.fixture
def recorded(tmp_path, monkeypatch) -> Path:
    """A run of 12 steps, recorded and unpacked again."""
    monkeypatch.setattr(demo_page, "ARCHIVES", tmp_path / "archives")
    demonstration = tmp_path / "demonstration"
    write_training(demonstration / "grpo_roc", MadeRun(steps=12, problems=10, eval_every=4), seed=3)
    (demonstration / "grpo_roc" / "verdict.json").write_text(json.dumps({"place": str(demonstration / "grpo_roc")}))
    (demonstration / "grpo_roc" / "best").mkdir(exist_ok=True)
    [archive] = demo_page.record(demonstration)
    [told] = sources(archive)
    assert re.fullmatch(r"rstar2 demo --trainer \w+ --seed 3", told["command"])
    assert told["commit"]
    assert told["load"]
    assert archive.name == "roc-3.tar.xz"
    out = tmp_path / "out"
    out.mkdir()
    assert demo_page.unpack(out) == [out / "roc-3"]
    return out / "roc-3"


def test_an_archive_keeps_every_tenth_step_and_two_evaluations(recorded, tmp_path):
    first = tmp_path / "demonstration" / "grpo_roc"
    assert sorted(path.name.split(".")[0] for path in (recorded / "episodes").iterdir()) == [
        "eval-000000",
        "eval-000012",
        "train-000001",
        "train-000010",
    ]
    for path in (recorded / "episodes").iterdir():
        assert lines(path) == lines(first / "episodes" / path.name)
    assert (recorded / "metrics.jsonl").read_bytes() == (first / "metrics.jsonl").read_bytes()


def test_an_archive_names_no_folder_of_the_machine_and_has_no_weights(recorded, tmp_path):
    assert json.loads((recorded / "verdict.json").read_text()) == {"place": "runs/demo/grpo_roc"}
    assert not (recorded / "best").exists()
    assert not [path for path in recorded.rglob("*.json*") if str(tmp_path).encode() in path.read_bytes()]


def test_a_recording_of_the_same_run_is_the_same_file(recorded, tmp_path):
    archive = tmp_path / "archives" / "roc-3.tar.xz"
    before = archive.read_bytes()
    demo_page.record(tmp_path / "demonstration")
    assert archive.read_bytes() == before


def test_the_recorded_runs_are_those_that_the_tutorial_names(tmp_path):
    runs = demo_page.unpack(tmp_path)
    assert [run.name for run in runs] == ["grpo-0", "roc-0", "roc-1"]
    assert sum(path.stat().st_size for path in demo_page.ARCHIVES.iterdir()) < 1_000_000
    found = {finding.check for finding in diagnose(tmp_path / "roc-0")}
    assert "entropy_collapsed" in found, "the tutorial links to it as a collapse of the entropy"


def test_the_picture_of_the_first_page_shows_the_archives():
    with Image.open(demo_page.PICTURE) as picture:
        assert picture.text["Source"] == demo_page.drawn_from(), "run `python tools/docs_site/demo_page.py draw`"
