"""An index is removed where it is damaged or nobody wants it any more, and never from under a viewer."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from types import SimpleNamespace

import pytest
from run_sample import write_run
from viewed import viewed

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.index import RunIndex, locking, run_index
from rstar2_env.view.index.locking import claim, lock_file
from rstar2_env.view.index.schema import connect, remove_old

DAY = 86400


@pytest.fixture
def made(tmp_path):
    """The index of a run, filled and closed."""
    write_run(tmp_path / "run", steps=1)
    with RunIndex(tmp_path / "run", tmp_path / "cache") as index:
        index.refresh()
    return index


def aged(index: RunIndex, days: float) -> None:
    for path in index.file.parent.iterdir():
        os.utime(path, (time.time() - days * DAY,) * 2)


@pytest.mark.parametrize("told", ["unable to open database file", "disk I/O error", "database or disk is full"])
def test_an_index_that_cannot_be_opened_now_is_not_removed(tmp_path, made, monkeypatch, told):
    def failing(file, *, checks_tables):
        raise sqlite3.OperationalError(told)

    with monkeypatch.context() as patch:
        patch.setattr(run_index, "connect", failing)
        with pytest.raises(ConfigurationError, match=f"cannot be opened: {told}.*RSTAR2_VIEW_CACHE"):
            RunIndex(tmp_path / "run", tmp_path / "cache")
    with connect(made.file, checks_tables=False) as db:
        assert db.execute("SELECT count(*) FROM episodes").fetchone() != (0,)


def test_a_damaged_index_that_another_viewer_fills_is_left_to_it(tmp_path, made):
    held = claim(made.file)
    made.file.write_bytes(damage := b"no database" * 1000)
    with pytest.raises(ConfigurationError, match="not a database"):
        RunIndex(tmp_path / "run", tmp_path / "cache")
    assert made.file.read_bytes() == damage
    held.close()
    with RunIndex(tmp_path / "run", tmp_path / "cache") as index:
        assert index.refresh()
        assert index.fills


def test_indexes_that_nobody_opened_for_long_are_removed_with_their_locks(made):
    aged(made, 59)
    remove_old(made.file.parent)
    assert made.file.exists()
    aged(made, 61)
    remove_old(made.file.parent)
    assert list(made.file.parent.iterdir()) == []


def test_an_index_that_a_viewer_opened_stays_though_nothing_in_it_changed(tmp_path, made):
    aged(made, 61)
    held = os.stat(made.file)
    with RunIndex(tmp_path / "run", tmp_path / "cache"):
        os.utime(made.file, (held.st_atime, held.st_mtime))
        remove_old(made.file.parent)
        assert made.file.exists()


def test_an_index_that_a_viewer_fills_stays_however_old(tmp_path, made):
    with RunIndex(tmp_path / "run", tmp_path / "cache") as index:
        index.refresh()
        aged(made, 61)
        remove_old(made.file.parent)
        assert made.file.exists()
    assert lock_file(made.file).exists()


def test_a_file_of_somebody_else_in_the_folder_stays(tmp_path):
    names = {"mine.sqlite", "mine.lock", "mine-0123456789abcdef.lock", "mine-0123456789abcdef.db"}
    for name in names:
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (0, 0))
    remove_old(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names - {"mine-0123456789abcdef.lock"}


def test_a_lock_that_is_removed_while_it_is_waited_for_is_no_lock(made, monkeypatch):
    path = lock_file(made.file)
    held = claim(made.file)
    assert claim(made.file) is None
    true_flock = fcntl.flock

    def flock(lock, how):
        if not held.closed:  # as whoever held it removes it, between the opening of the file and its lock
            path.unlink()
            held.close()
        return true_flock(lock, how)

    monkeypatch.setattr(locking, "fcntl", SimpleNamespace(**{**vars(fcntl), "flock": flock}))
    with claim(made.file) as lock:
        assert os.path.samestat(os.stat(path), os.fstat(lock.fileno()))


def test_a_server_removes_what_is_old_when_it_starts(tmp_path, made):
    aged(made, 61)
    write_run(tmp_path / "other", steps=1)
    with viewed(tmp_path / "other", base=tmp_path):
        assert not made.file.exists()
