"""A run that begins or goes on leaves nothing of lost steps behind, and writes JSON that anyone reads."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import SUPPORT
from run_sample import CONFIG, groups_of, write_run, write_step

from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.core.run_folder import EpisodeEntry, RunWriter, read_run


def test_a_resumed_run_leaves_no_figures_or_episodes_of_lost_steps_behind(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(folder)
    other = RunWriter(folder, rank=1)
    other.train(3, groups_of(3, first=5))
    kept = (folder / "episodes" / "train-000002.jsonl.gz").read_bytes()
    (folder / "checkpoint-4").mkdir()
    RunWriter(folder).event("checkpoint", 4, path="checkpoint-4")

    writer = RunWriter(folder, tokens=True)
    writer.begin(CONFIG, resumed=2)
    run = read_run(folder)
    assert run.steps == [1, 2]
    assert [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()] == [1, 2]
    names = sorted(path.name for path in (folder / "episodes").iterdir())
    assert names == ["eval-000000.jsonl.gz", "train-000001.jsonl.gz", "train-000002.jsonl.gz"]
    assert sorted(path.name for path in (folder / "tokens").iterdir()) == [
        "train-000001.jsonl.gz",
        "train-000002.jsonl.gz",
    ]
    assert (folder / "episodes" / "train-000002.jsonl.gz").read_bytes() == kept
    assert [one.step for one in run.evaluations] == [0]
    assert [one.step for one in run.checkpoints] == [2], "a checkpoint of a lost step does not count"
    assert [event["event"] for event in run.events][-3:] == ["finished", "checkpoint", "resumed"]
    assert not run.finished
    write_step(writer, 3)
    assert run.steps == [1, 2, 3]


@pytest.mark.parametrize("line", ["[1]", '{"step": 1e999}', '{"loss": 1}', "{", "[" * 100_000])
def test_a_run_is_not_resumed_with_metrics_that_no_run_writes(line: str, tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(RecordFormatError, match=r"metrics\.jsonl contains a line without a valid step"):
        RunWriter(tmp_path / "run").begin(CONFIG, resumed=2)


@pytest.mark.parametrize("name", ["metrics.jsonl", "events.jsonl"])
def test_a_resumed_run_writes_to_no_file_outside_of_its_folder(name: str, tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    outside = tmp_path / "mine.txt"
    (tmp_path / "run" / name).rename(outside)
    (tmp_path / "run" / name).symlink_to(outside)
    before = outside.read_bytes()
    with pytest.raises(ConfigurationError, match="outside of the run's folder"):
        RunWriter(tmp_path / "run").begin(CONFIG, resumed=2)
    assert outside.read_bytes() == before


def test_a_run_that_begins_anew_keeps_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    RunWriter(tmp_path / "run").begin({"trainer": "grpo"})
    run = read_run(tmp_path / "run")
    assert (run.steps, run.evaluated_steps, run.tokens(1)) == ([], [], [])
    assert [event["event"] for event in run.events] == ["started"]
    assert run.config == {"trainer": "grpo"}


def test_what_is_known_beside_an_episode_is_further_keys_of_its_line(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.begin(CONFIG)
    groups = groups_of(1, count=2, size=2)
    writer.train(1, groups, extra=lambda episode: {"gold": f"of {episode.group}", "rate": float("nan")})
    writer.held_out(1, groups[0], extra=lambda episode: {"gold": "7"}, seconds=0.5)
    run = read_run(tmp_path / "run")
    assert [entry.more for entry in run.episodes(1)] == [{"gold": f"of {n}", "rate": None} for n in (0, 0, 1, 1)]
    assert [entry.more for entry in run.held_out(1)] == [{"gold": "7", "seconds": 0.5}] * 2


def test_files_of_something_else_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("precious")
    with pytest.raises(ConfigurationError, match=r"files of yours \(metrics\.jsonl\)"):
        RunWriter(tmp_path).begin(CONFIG)
    assert (tmp_path / "metrics.jsonl").read_text() == "precious"


def test_the_file_of_a_step_that_is_played_again_is_begun_anew(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(folder, steps=2)
    writer = RunWriter(folder)
    writer.begin(CONFIG, resumed=2)
    writer.held_out(2, [])
    assert read_run(folder).held_out(2) == []


def test_a_number_that_is_not_finite_is_null_and_every_line_is_strict_json(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run", tokens=True)
    writer.begin({"rate": float("inf"), "model": object()})
    groups = groups_of(1, count=1, size=1)
    groups[0][0].reward = float("nan")
    groups[0][0].messages[0] = type(groups[0][0].messages[0])("user", "a lone \ud800")
    writer.train(1, groups)
    writer.metrics(1, {"a": float("nan"), "b": float("-inf"), "c": 1.5})

    def refuse(word: str) -> None:
        raise AssertionError(word)

    with gzip.open(tmp_path / "run" / "episodes" / "train-000001.jsonl.gz", "rt") as file:
        (record,) = [json.loads(line, parse_constant=refuse) for line in file]
    assert record["reward"] is None
    assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text(), parse_constant=refuse) == {
        "step": 1,
        "a": None,
        "b": None,
        "c": 1.5,
    }
    assert read_run(tmp_path / "run").config == {"rate": None, "model": "object"}
    assert read_run(tmp_path / "run").episodes(1)[0].episode.reward != 0


def test_episodes_are_not_written_where_they_are_not_wanted(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run", episodes=False)
    writer.begin(CONFIG)
    write_step(writer, 1)
    writer.held_out(1, [])
    assert not (tmp_path / "run" / "episodes").exists()
    assert read_run(tmp_path / "run").steps == [1]


WRITING = """
import sys
sys.path[:0] = sys.argv[2:]
from run_sample import CONFIG, write_step
from rstar2_env.core.run_folder import RunWriter
writer = RunWriter(sys.argv[1], tokens=True)
writer.begin(CONFIG)
print("begun", flush=True)
step = 0
while True:
    step += 1
    write_step(writer, step)
"""


@pytest.mark.parametrize("moment_s", [0.0, 0.05, 0.2])
def test_a_writer_that_is_killed_leaves_a_run_that_reads_and_goes_on(tmp_path: Path, moment_s: float) -> None:
    folder = tmp_path / "run"
    here = str(SUPPORT)
    with subprocess.Popen(
        [sys.executable, "-c", WRITING, str(folder), here], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(moment_s)
        os.kill(process.pid, signal.SIGKILL)
    run = read_run(folder)
    done = len(run.metrics())
    assert [line["step"] for line in run.metrics()] == list(range(1, done + 1))
    assert set(run.steps) - {done + 1} == set(range(1, done + 1)), "at most one step is unfinished"
    for step in range(1, done + 1):
        assert [len(group) for group in run.groups(step)] == [3, 3, 3]
    writer = RunWriter(folder, tokens=True)
    writer.begin(CONFIG, resumed=done // 2)
    assert run.steps == list(range(1, done // 2 + 1))
    write_step(writer, done // 2 + 1)
    assert run.steps[-1] == done // 2 + 1


def test_a_listener_gets_the_episodes_and_lines_that_a_reader_finds(tmp_path: Path) -> None:
    told: list[tuple[str, int, int, EpisodeEntry]] = []
    writer = RunWriter(tmp_path, tokens=True)
    writer.told = lambda split, step, line, entries: told.extend(
        (split, step, at, entry) for at, entry in enumerate(entries, line)
    )
    writer.begin(CONFIG)
    for first in (0, 2):
        writer.train(1, groups_of(1, first=first), extra=lambda episode: {"gold": "7"})
    writer.held_out(1, [episode for group in groups_of(1) for episode in group], extra=lambda episode: {"gold": "8"})
    run = read_run(tmp_path)
    read = [(split, 1, line, entry) for split in ("train", "eval") for _, line, entry in run.placed(1, split)]
    assert len(read) == len(told) > 4
    assert [(*place, entry.episode.record(), entry.more) for *place, entry in told] == [
        (*place, entry.episode.record(), entry.more) for *place, entry in read
    ]
