"""What a file system, a disk or a file may do to an index while it is filled costs no other episode, and is told."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from run_sample import write_run

from rstar2_env.view.index import RunIndex, filling
from rstar2_env.view.index.episode_columns import as_float, as_int

HUGE = 10**400
LINE = {"problem_id": "q", "messages": [{"role": "user", "content": "step"}]}


def written(*records: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in records)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "eval.jsonl"


@pytest.fixture
def index(tmp_path, file):
    with RunIndex(file, tmp_path / "cache") as made:
        yield made


def test_lines_that_come_while_words_are_taken_over_become_searchable(file, index, monkeypatch):
    file.write_text(written(LINE))
    readings = []

    def read_batches(path: Path, start: int):
        readings.append(start)
        if len(readings) == 2:  # the first was for the episodes, this one is for their words
            with path.open("a") as opened:
                opened.write(written(LINE, LINE))
        return true_grown(path, start)

    true_grown = filling.read_batches
    monkeypatch.setattr(filling, "read_batches", read_batches)
    index.refresh()
    assert readings == [0, 0]
    assert index.progress()[2:] == (1, 1)
    index.refresh()
    assert index.progress()[2:] == (3, 3)
    assert len(index.query("SELECT rowid FROM words WHERE words MATCH 'step'")) == 3


@pytest.mark.parametrize("number", [2**63 + 5, 2**64 - 1])
def test_a_file_whose_number_takes_64_bits_is_read_once(file, index, monkeypatch, number):
    true_stat = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        found = true_stat(path, **options)
        if path != file:
            return found
        return os.stat_result((found[0], number, *found[2:]), {"st_mtime_ns": found.st_mtime_ns})

    monkeypatch.setattr(Path, "stat", stat)
    file.write_text(written(LINE))
    assert index.refresh()
    version = index.version
    assert index.refresh()
    assert index.query("SELECT count(*) FROM episodes") == [(1,)]
    assert index.version == version, "it is known again"


@pytest.mark.parametrize("name", ["round", "group", "member", "reward", "turns", "policy_tokens"])
def test_an_integer_of_any_size_in_an_episode_stops_nothing(file, index, name):
    file.write_text(written(LINE, {**LINE, name: HUGE}, {**LINE, name: -HUGE}, LINE))
    index.refresh()
    assert index.query("SELECT line FROM episodes ORDER BY line") == [(0,), (1,), (2,), (3,)]


def test_numbers_are_taken_within_what_the_index_holds():
    assert [as_int(one) for one in (7, 7.9, 2**62 - 1, 2**62, -HUGE, float("inf"), float("nan"), "7", None)] == [
        *(7, 7, 2**62 - 1),
        *(0,) * 6,
    ]
    assert as_int(HUGE, None) is None
    assert [as_float(one) for one in (7, -0.5, HUGE, float("inf"), float("nan"), "7", None)] == [
        *(7.0, -0.5),
        *(None,) * 5,
    ]


def test_a_line_that_overflows_after_all_is_left_out_with_its_number(file, index, monkeypatch):
    def facts_of(record, split, step, line):
        if line == 1:
            raise OverflowError("int too large to convert to float")
        return true_facts(record, split, step, line)

    true_facts = filling.facts_of
    monkeypatch.setattr(filling, "facts_of", facts_of)
    file.write_text(written(LINE, LINE, LINE))
    index.refresh()
    assert index.query("SELECT line FROM episodes ORDER BY line") == [(0,), (2,)]
    assert index.notes() == ["eval.jsonl, line 2: int too large to convert to float; the line was skipped."]


@pytest.mark.parametrize("form", ['{"step": %s, "group": 1, "member": 0}', '{"member": 0, "group": 1, "step": %s}'])
@pytest.mark.parametrize("number", ["9" * 19, "9" * 5000, "1e400", '"x"'])
def test_a_place_of_tokens_that_is_out_of_range_is_told_by_its_line(tmp_path, form, number):
    run = tmp_path / "run"
    write_run(run, steps=1)
    file = run / "tokens" / "train-000009.jsonl"
    file.write_text(f"{form % number}\n{form % 9}\n")
    with RunIndex(run, tmp_path / "cache") as index:
        assert index.refresh()
        (note,) = index.notes()
        assert note.startswith("tokens/train-000009.jsonl, line 1: ")
        assert index.query("SELECT line, step FROM tokens WHERE step != 1") == [(1, 9)]


def test_a_file_that_could_not_be_dropped_is_dropped_the_next_time(tmp_path, file, index, monkeypatch):
    file.write_text(written(LINE))
    index.refresh()
    file.write_text(written({**LINE, "problem_id": "another"}))

    def full(self: filling.Filler) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(filling.Filler, "_commit", full)
        with pytest.raises(sqlite3.OperationalError, match="full"):
            index.refresh()
    assert index.query("SELECT count(*) FROM episodes") == [(1,)]
    assert index.refresh()
    names = "SELECT p.name FROM episodes e JOIN problems p ON p.id = e.problem"
    assert index.query(names) == [("another",)]
