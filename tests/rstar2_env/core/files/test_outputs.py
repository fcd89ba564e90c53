"""Claims about the one rule for outputs: which folders and files may be written, and what replacing removes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.outputs import (
    MANIFEST,
    begin_folder,
    check_file,
    check_folder,
    files_in,
    kind_of,
    list_files,
    named_paths,
    refuse_inputs,
    replacing,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an evaluation with three files, one of them in a folder."""
    made = tmp_path / "run"
    begin_folder(made, "evaluation", "run.json", "episodes/*.jsonl")
    for name in ("run.json", "episodes/a.jsonl", "episodes/b.jsonl"):
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text("{}\n")
    return made


def contents(folder: Path) -> dict[str, bytes | None]:
    return {name: (folder / name).read_bytes() if (folder / name).is_file() else None for name in files_in(folder)}


def refused(folder: Path, kind: str = "evaluation", **options: object) -> str:
    before = contents(folder)
    with pytest.raises(ConfigurationError) as caught:
        check_folder(folder, kind, **options)  # type: ignore[arg-type]
    assert contents(folder) == before
    return str(caught.value)


def test_a_new_and_an_empty_folder_are_accepted_and_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "empty" / "within").mkdir(parents=True)
    for name in ("new", "a/b/c", "empty"):
        check_folder(tmp_path / name, "evaluation")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"]


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": None, "overwrite": None}])
def test_files_of_the_user_are_named_and_refused(tmp_path: Path, options: dict[str, bool]) -> None:
    for name in ("README.md", "config.json", "a", "z"):
        (tmp_path / name).write_text("mine")
    assert "files of yours (README.md, a, config.json and 1 more)" in refused(tmp_path, **options)


def test_a_file_in_an_inner_folder_is_a_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "photos" / "2020").mkdir(parents=True)
    (tmp_path / "photos" / "2020" / "x.png").write_text("mine")
    assert "photos" in refused(tmp_path, overwrite=True)


def test_its_own_kind_is_continued_or_replaced_and_otherwise_refused(folder: Path) -> None:
    said = refused(folder)
    assert "already holds an evaluation" in said
    assert "(resume=... or overwrite=...)" in said
    assert "resume" not in refused(folder, resume=None)
    check_folder(folder, "evaluation", resume=True)
    check_folder(folder, "evaluation", overwrite=True)
    assert "one of the two" in refused(folder, resume=True, overwrite=True)


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}])
def test_another_kind_is_refused(folder: Path, options: dict[str, bool]) -> None:
    assert "holds an evaluation (episodes, run.json), which would be overwritten" in refused(folder, "sft", **options)


def test_replacing_removes_what_was_written_and_keeps_the_folder(folder: Path) -> None:
    begin_folder(folder, "evaluation", "new.json")
    assert files_in(folder) == [MANIFEST]
    assert kind_of(folder) == "evaluation"
    assert len((folder / MANIFEST).read_text().splitlines()) == 2
    check_folder(folder, "training")  # a folder that was only begun holds nothing


def test_a_foreign_file_is_refused_even_when_replacing_and_nothing_is_removed(folder: Path) -> None:
    (folder / "episodes" / "notes.txt").write_text("mine")
    assert "did not write (episodes/notes.txt)" in refused(folder, overwrite=True)
    with pytest.raises(ConfigurationError, match=r"notes\.txt"):
        begin_folder(folder, "evaluation")
    assert len(files_in(folder)) == 5


def test_a_link_is_a_foreign_file_and_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("mine")
    (folder / "link").symlink_to(tmp_path / "data")
    assert "did not write (link)" in refused(folder, overwrite=True)


def test_an_input_in_the_folder_is_never_replaced(folder: Path, tmp_path: Path) -> None:
    list_files(folder, "best/model.bin")
    (folder / "best").mkdir()
    (folder / "best" / "model.bin").write_text("weights")
    for inputs in ({"model": str(folder / "best")}, [[{"teacher": f"{folder}/best/model.bin:x=1"}]], f"{folder}@3"):
        assert "this command reads its input from" in refused(folder, overwrite=True, inputs=inputs)
    check_folder(folder, "evaluation", overwrite=True, inputs=[str(tmp_path), "nowhere", 3, None])


def test_a_folder_that_is_being_written_counts_as_a_whole_until_its_files_are_listed(folder: Path) -> None:
    (folder / "checkpoint-1").mkdir()
    (folder / "checkpoint-1" / "a.bin").write_text("1")
    assert "checkpoint-1/a.bin" in refused(folder, overwrite=True)
    list_files(folder, folders={"checkpoint-1": None})
    check_folder(folder, "evaluation", overwrite=True)
    list_files(folder, folders={"checkpoint-1": files_in(folder / "checkpoint-1")})
    check_folder(folder, "evaluation", overwrite=True)
    (folder / "checkpoint-1" / "notes.txt").write_text("mine")
    assert "checkpoint-1/notes.txt" in refused(folder, overwrite=True)


def test_an_inner_output_is_judged_by_its_own_manifest(folder: Path) -> None:
    begin_folder(folder / "inner", "evaluation", "x")
    (folder / "inner" / "x").write_text("1")
    list_files(folder, folders={"inner": None})
    check_folder(folder, "evaluation", overwrite=True)
    (folder / "inner" / "notes.txt").write_text("mine")
    assert "inner/notes.txt" in refused(folder, overwrite=True)


def test_locks_and_files_that_a_kill_left_half_written_are_no_foreign_files(folder: Path) -> None:
    for name in (".run.json.lock", "run.json.part", "episodes/.a.jsonl.lock"):
        (folder / name).write_text("")
    check_folder(folder, "evaluation", overwrite=True)
    begin_folder(folder, "evaluation")
    assert files_in(folder) == [MANIFEST]


def test_a_manifest_that_was_cut_counts_the_lines_that_are_whole(folder: Path) -> None:
    with (folder / MANIFEST).open("a") as file:
        file.write('{"file": "note')
    check_folder(folder, "evaluation", overwrite=True)
    (folder / "notes.txt").write_text("mine")
    assert "notes.txt" in refused(folder, overwrite=True)


def test_a_file_is_new_or_empty_or_replaced_on_request(tmp_path: Path) -> None:
    check_file(tmp_path / "a" / "new.jsonl")
    file = tmp_path / "x.jsonl"
    file.touch()
    check_file(file)
    file.write_text("{}\n")
    with pytest.raises(ConfigurationError, match=r"already exists.*, or replace it \(overwrite="):
        check_file(file)
    with pytest.raises(ConfigurationError, match=r"continue it, or replace it \(resume=\.\.\. or overwrite="):
        check_file(file, resume=False)
    check_file(file, resume=True)
    check_file(file, overwrite=True)
    with pytest.raises(ConfigurationError, match="this command reads its input from"):
        check_file(file, overwrite=True, inputs={"problems": f"{file}:question=q"})
    with pytest.raises(ConfigurationError, match="is a folder"):
        check_file(tmp_path, overwrite=True)
    with pytest.raises(ConfigurationError, match=r"x\.jsonl is a file"):
        check_file(file / "y", overwrite=True)


def test_a_loop_of_links_is_not_an_input(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "input").touch()
    refuse_inputs(tmp_path / "loop", [tmp_path / "input"])
    with pytest.raises(ConfigurationError, match="reads its input from"):
        refuse_inputs(tmp_path / "input", [tmp_path / "input"])


def test_a_device_is_never_replaced_by_a_file() -> None:
    with pytest.raises(ConfigurationError, match="/dev/null is not a regular file"):
        check_file("/dev/null", overwrite=True)


def test_a_file_that_is_replaced_stays_as_it_was_after_an_error(tmp_path: Path) -> None:
    file = tmp_path / "x.html"
    file.write_text("before")
    with contextlib.suppress(KeyboardInterrupt), replacing(file) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]
    assert file.read_text() == "before"
    with replacing(file) as partial:
        partial.write_text("after")
    assert file.read_text() == "after"


def test_paths_are_found_in_every_form_that_options_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").touch()
    given = {"a": ["x.csv:question=q", Path("x.csv")], "b": ("x.csv@3", "no.csv", json.dumps({}), "", 5, None)}
    assert [str(path) for path in named_paths(given)] == ["x.csv"] * 3
