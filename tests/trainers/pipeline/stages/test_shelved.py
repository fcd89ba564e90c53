"""Claims about the stages that load data by a lock file: what they leave, and that filling it runs nothing again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import load_problems
from rstar2_env.problems.prepare import UNKNOWN
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.run import PipelineRun, run_pipeline

ROWS = [("one", "How many legs have three cats?", "12"), ("two", "What part of four is one?", "1/4")]


def write(folder: Path, rows: list[tuple[str, str, str]] = ROWS) -> None:
    problems = [{"id": id, "question": question, "answer": answer} for id, question, answer in rows]
    (folder / "problems.jsonl").write_text("".join(json.dumps(one) + "\n" for one in problems), "utf-8")
    turns = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello!"}]
    (folder / "talks.jsonl").write_text((json.dumps({"messages": turns}) + "\n{}\n") * 3, "utf-8")


def a_pipeline(folder: Path, **prepare: Any) -> Path:
    (folder / "made.lock").write_text('{"version": 1, "sources": {}}', "utf-8")
    sources = {"file": {"problems": str(folder / "problems.jsonl")}}
    stages = {
        "data": {"kind": "prepare", "lock": "made.lock", "sources": sources, **prepare},
        "talks": {"kind": "conversations", "lock": "made.lock", "sources": {str(folder / "talks.jsonl"): 2}},
    }
    file = folder / "made.json"
    file.write_text(json.dumps({"stages": stages}), "utf-8")
    return file


def run(file: Path) -> tuple[PipelineRun, list[str]]:
    said: list[str] = []
    return run_pipeline(read_pipeline(file), file.parent / "run", progress=False, say=said.append), said


def test_the_problems_the_reasons_and_what_was_loaded_are_left(tmp_path: Path) -> None:
    write(tmp_path)
    done, said = run(a_pipeline(tmp_path))
    folder = tmp_path / "run" / "stages" / "data"
    assert [problem.id for problem in load_problems(folder / "train.jsonl")] == ["file/one"]
    assert done.states["data"].figures == {"train": 1.0, "left_out": 1.0}
    assert [json.loads(line)["filter"] for line in (folder / "removed.jsonl").read_text().splitlines()] == ["integers"]
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert report["removed"]["integers"]["examples"][0]["question"] == "What part of four is one?"
    assert json.loads((folder / "sources.json").read_text("utf-8"))["sources"]["file"]["records"] == 2
    assert "integers: left out 1 problems; the first reason: the answer is not an integer" in said
    talks = (tmp_path / "run" / "stages" / "talks" / "traces.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["messages"][1]["content"] for line in talks] == ["Hello!"] * 2


def test_two_stages_fill_one_lock_which_makes_neither_run_again(tmp_path: Path) -> None:
    write(tmp_path)
    file = a_pipeline(tmp_path)
    _, said = run(file)
    pins = json.loads((tmp_path / "made.lock").read_text("utf-8"))["sources"]
    assert list(pins) == [str(tmp_path / "talks.jsonl"), "file"]
    assert all(pin["checksum"].startswith("sha256:") and pin["revision"] == UNKNOWN for pin in pins.values())
    assert f"file: checksum is {pins['file']['checksum']}" in said
    assert all("is up to date" in line for line in run(file)[1])
    written = (tmp_path / "made.lock").stat().st_ino
    run_pipeline(read_pipeline(file), tmp_path / "run", progress=False, begin="data")
    assert (tmp_path / "made.lock").stat().st_ino == written, "it had nothing to fill in"


def test_a_source_that_changed_is_refused_when_its_stage_runs_again(tmp_path: Path) -> None:
    write(tmp_path)
    run(a_pipeline(tmp_path))
    lock = (tmp_path / "made.lock").read_text("utf-8")
    write(tmp_path, [*ROWS, ("three", "How many legs have four cats?", "16")])
    file = a_pipeline(tmp_path, ngram=9)
    (tmp_path / "made.lock").write_text(lock, "utf-8")
    with pytest.raises(ConfigurationError, match=r"'file' .* differs from the content that .*made\.lock records"):
        run(file)


def test_files_that_sources_name_are_found_beside_the_pipeline_and_count_by_their_content(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "bench.jsonl").write_text('{"question": "Nothing in common?", "answer": "1"}\n', "utf-8")
    file = tmp_path / "made.json"
    prepare = {"kind": "prepare", "sources": {"own": {"problems": "problems.jsonl"}}, "against": ["bench.jsonl"]}
    talks = {"kind": "conversations", "sources": {"talks.jsonl": 2}}
    file.write_text(json.dumps({"stages": {"data": prepare, "talks": talks}}), "utf-8")
    run(file)
    # What was loaded is told by the names in the pipeline's file, which hold on every machine.
    sources = [json.loads((tmp_path / f"run/stages/{name}/sources.json").read_text()) for name in ("data", "talks")]
    pins = {name: pin["source"] for one in sources for name, pin in one["sources"].items()}
    assert pins == {
        "own": "problems.jsonl (train)",
        "against bench.jsonl": "bench.jsonl (test)",
        "talks.jsonl": "talks.jsonl",
    }
    assert all("is up to date" in line for line in run(file)[1])
    write(tmp_path, [*ROWS, ("three", "How many legs have four cats?", "16")])
    (tmp_path / "talks.jsonl").touch()
    said = run(file)[1]
    assert any("data: this stage runs again, because the content of problems.jsonl changed." in line for line in said)
    assert "talks: this stage is up to date" in said[-1]
    for name, stage in (("bench.jsonl", "data"), ("talks.jsonl", "talks")):
        with (tmp_path / name).open("a") as opened:
            opened.write((tmp_path / name).read_text().replace("Hello", "Hi").replace("common", "particular"))
        assert any(
            f"{stage}: this stage runs again, because the content of {name} changed." in line for line in run(file)[1]
        )


def test_every_split_is_an_output(tmp_path: Path) -> None:
    write(tmp_path, [(str(n), f"How many legs have {n} cats?", str(4 * n)) for n in range(40)])
    done, _ = run(a_pipeline(tmp_path, splits={"train": 0.5, "validation": 0.5}))
    counts = done.states["data"].figures
    assert counts["train"] + counts["validation"] == 40
    assert min(counts["train"], counts["validation"]) > 5


def test_problems_are_in_the_order_of_the_pipelines_seed_or_of_the_stages_own(tmp_path: Path) -> None:
    write(tmp_path, [(str(n), f"How many legs have {n} cats?", str(4 * n)) for n in range(40)])

    def order(pipeline: int, **prepare: Any) -> str:
        file = a_pipeline(tmp_path, **prepare)
        file.write_text(json.dumps({"seed": pipeline, **json.loads(file.read_text("utf-8"))}), "utf-8")
        run(file)
        return (tmp_path / "run" / "stages" / "data" / "train.jsonl").read_text("utf-8")

    assert order(1) != order(2) == order(3, seed=2)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"kind": "prepare", "sources": {}}, "source of problems"),
        ({"kind": "prepare", "sources": {"a": {"problems": "x", "wieght": 1}}}, "weight"),
        ({"kind": "conversations", "sources": {}}, "source of conversations"),
        ({"kind": "conversations", "sources": {"toolace": "many"}}, "sources"),
    ],
)
def test_a_mistake_names_the_stage_and_the_field(stage: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "made.json").write_text(json.dumps({"stages": {"data": stage}}), "utf-8")
    with pytest.raises(ConfigurationError, match=f"stage 'data'.*{message}"):
        run(tmp_path / "made.json")
