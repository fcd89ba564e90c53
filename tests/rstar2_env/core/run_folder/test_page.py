"""docs/run-folder.md says what the files hold, and its own reader reads them, also after a kill and a resume."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_reader import PAGE, SOMETIMES, check_page_reader, keys_of
from run_sample import CONFIG, episode, write_run, write_step

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import RunWriter, TokensEntry, read_run
from rstar2_env.core.turn import Turn


def test_the_pages_reader_finds_what_the_package_finds(run_folder: Path) -> None:
    RunWriter(run_folder, rank=1).train(2, [[episode(7, 0, 2)]])
    check_page_reader(run_folder)


@pytest.mark.parametrize("file", ["metrics.jsonl", "events.jsonl", "episodes/train-000004.jsonl.gz"])
def test_it_does_so_after_a_kill_and_a_resume(run_folder: Path, file: str) -> None:
    content = (run_folder / file).read_bytes()
    (run_folder / file).write_bytes(content[: len(content) - 9])
    check_page_reader(run_folder)
    writer = RunWriter(run_folder)
    writer.begin(CONFIG, resumed=2)
    write_step(writer, 3)
    check_page_reader(run_folder)


def test_the_page_names_every_key() -> None:
    decided = {"step", "group", "member", "round", "kept", "reason", "advantage"} | SOMETIMES
    assert keys_of("Episodes") - decided == set(Episode().record()) - {"group"}
    text = PAGE.read_text("utf-8")
    for name in ({*Turn().record("")} | {"observation"}, {*TokensEntry(0, 0, 0, [], [], [], [], []).record()}):
        assert all(f"`{key}`" in text for key in name), name


def test_the_pages_first_example_runs(run_folder: Path) -> None:
    (code,) = re.findall(r"With the package:\n\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(code.replace("runs/grpo_roc", str(run_folder)).replace("held_out(20)", "held_out(4)"), {})


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    for name in ("events.out.tfevents.1", "episodes/notes.jsonl", "episodes/train-5.txt", "tokens/README"):
        (tmp_path / "run" / name).write_text("not ours")
    check_page_reader(tmp_path / "run")
    RunWriter(tmp_path / "run").begin(CONFIG, resumed=0)
    assert (tmp_path / "run" / "episodes" / "notes.jsonl").read_text() == "not ours"
    assert read_run(tmp_path / "run").steps == []
