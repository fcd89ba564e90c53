"""Claims about a full disk: every library's error is recognized, and raised with the path and what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from pathlib import Path

import pytest

from rstar2_env.core.errors import DiskFullError
from rstar2_env.core.files.append_only import append_text
from rstar2_env.core.files.full_disk import is_disk_full, naming_full_disk
from rstar2_env.core.files.json_lines import add_line, begin_lines, write_json
from rstar2_env.core.run_folder import RunWriter

NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
FULL = "/dev/full"


@pytest.mark.parametrize(
    "error",
    [
        NO_SPACE,
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        OSError(errno.EFBIG, os.strerror(errno.EFBIG)),
        RuntimeError("Error while serializing: I/O error: File too large (os error 27)"),
        sqlite3.OperationalError("database or disk is full"),
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("[enforce fail] . PytorchStreamWriter failed writing file data/0: file write failed"),
    ],
)
def test_the_errors_of_every_library_are_recognized_also_as_a_cause(error: Exception) -> None:
    assert is_disk_full(error)
    other = ValueError("closing failed")
    other.__context__ = error
    assert is_disk_full(other)
    said = r"^runs/x cannot be written, because its disk is full\..*choose another"
    with pytest.raises(DiskFullError, match=said), naming_full_disk("runs/x"):
        raise other


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "Permission denied"), ValueError("x"), RuntimeError("code 2")])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert not is_disk_full(error)
    with pytest.raises(type(error)), naming_full_disk("x"):
        raise error


def test_a_line_that_does_not_fit_is_reported_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(DiskFullError, match=FULL):
        append_text(Path(FULL), "{}\n")
    with contextlib.suppress(OSError), open(FULL, "a") as file, pytest.raises(DiskFullError, match=FULL):
        add_line(file, {"a": "x" * 100_000})


@pytest.mark.parametrize("write", [lambda path: write_json(path, {"a": 1}), lambda path: begin_lines(path, ["{}\n"])])
def test_a_file_that_does_not_fit_is_reported_and_the_earlier_one_is_kept(tmp_path, monkeypatch, write) -> None:
    path = tmp_path / "x.json"
    path.write_text("before")

    def full(self: Path, *_: object, **__: object) -> None:
        raise NO_SPACE

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DiskFullError, match=rf"^{path} cannot be written"):
        write(path)
    monkeypatch.undo()
    assert path.read_text() == "before"
    assert [found.name for found in tmp_path.iterdir()] == ["x.json"]


def test_a_run_whose_disk_fills_keeps_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.begin({"trainer": "grpo"})
    writer.metrics(1, {"loss": 0.5})
    (tmp_path / "run" / "events.jsonl").unlink()
    (tmp_path / "run" / "events.jsonl").symlink_to(FULL)
    with pytest.raises(DiskFullError, match=r"events\.jsonl"):
        writer.event("checkpoint", 1)
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == '{"step": 1, "loss": 0.5}\n'
