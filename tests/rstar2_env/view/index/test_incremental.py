"""An index that followed a run equals one that is made afresh of what the run left, whatever happened in between."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_dump import dump
from run_sample import CONFIG, decisions_of, episode, groups_of, write_run

from rstar2_env.core.run_folder import RunWriter, TokensEntry
from rstar2_env.view.index import RunIndex, schema
from rstar2_env.view.index.line_files import line_files_of


@pytest.fixture
def index_of():
    """Makes indexes that are closed in the end."""
    with contextlib.ExitStack() as stack:
        yield lambda run, cache: stack.enter_context(RunIndex(run, cache))


WORDS = ("step", '"step 2"', "group", "8*")


class Story:
    """A run to which things happen, one after the other, as they happen to real ones."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.step = folder, 0
        self.writer = self._begin(None)

    def _begin(self, resumed: int | None) -> RunWriter:
        writer = RunWriter(self.folder, tokens=True)
        writer.begin(CONFIG, resumed=resumed)
        return writer

    def train(self, amount: int) -> None:
        """Steps of one or two processes, with tokens."""
        self.step += 1
        groups = groups_of(self.step, count=amount)
        self.writer.train(self.step, groups, decisions_of(groups))
        RunWriter(self.folder, rank=1).train(self.step, groups_of(self.step, first=amount, count=1))
        self.writer.tokens([TokensEntry(self.step, 0, 1, [1], [2, 3], [1, 1], [-1.0, -1.0], [0.5, 0.5])])

    def more(self, amount: int) -> None:
        """More groups of a step that has begun."""
        if self.step:
            self.writer.train(self.step, groups_of(self.step, first=20, count=amount))

    def held_out(self, amount: int) -> None:
        """An evaluation, after which a plain file grows too."""
        self.writer.held_out(self.step, [episode(number, 0, 90 + amount) for number in range(amount)])
        with (self.folder / "episodes" / "eval-000099.jsonl").open("a") as file:
            file.write('{"messages": [{"role": "user", "content": "step 8' + str(amount) + '"}], "problem_id": "q"}\n')

    def kill(self, amount: int) -> None:
        """A crash in the middle of a line or of a gzip member."""
        files = sorted((self.folder / "episodes").glob("*")) if (self.folder / "episodes").exists() else []
        for file in files[-amount:]:
            data = file.read_bytes()
            with file.open("ab") as opened:
                opened.write(data[: 10 * amount + 11] if file.suffix == ".gz" else b'{"messages": [], "st')

    def resume(self, amount: int) -> None:
        """Back to an earlier step: the files of later ones are gone."""
        self.step = max(self.step - amount, 0)
        self.writer = self._begin(self.step)

    def anew(self, amount: int) -> None:
        """Another run begins in the folder."""
        self.step = 0
        self.writer = self._begin(None)

    def lose(self, amount: int) -> None:
        """Somebody deletes all episodes."""
        shutil.rmtree(self.folder / "episodes", ignore_errors=True)


ACTS = ("train", "train", "more", "held_out", "kill", "resume", "anew", "lose")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(1, 3), st.booleans()), min_size=3, max_size=12))
def test_an_index_that_followed_equals_a_fresh_one(acts):
    with tempfile.TemporaryDirectory() as base:
        story = Story(Path(base) / "run")
        followed = RunIndex(story.folder, Path(base) / "a")
        for act, amount, looks in acts:
            getattr(story, act)(amount)
            if looks:
                followed.refresh(0.001)  # often not to the end
        assert followed.refresh()
        fresh = RunIndex(story.folder, Path(base) / "b")
        assert fresh.refresh()
        try:
            assert dump(followed, *WORDS) == dump(fresh, *WORDS)
        finally:
            followed.close()
            fresh.close()


def test_a_file_that_is_replaced_by_one_that_begins_alike_is_read_again(tmp_path, index_of):
    run = tmp_path / "run"
    writer = write_run(run, steps=1)
    index = index_of(run, tmp_path / "cache")
    index.refresh()
    path = run / "episodes" / "train-000001.jsonl.gz"
    begun = path.stat()
    path.write_bytes(b"")
    RunWriter(run).train(1, groups_of(1))
    RunWriter(run, rank=0)
    writer.train(1, groups_of(7))  # grows beyond what it was, in the same inode
    assert path.stat().st_ino == begun.st_ino
    assert path.stat().st_size >= begun.st_size
    index.refresh()
    fresh = index_of(run, tmp_path / "other")
    fresh.refresh()
    assert dump(index, *WORDS) == dump(fresh, *WORDS)


def test_words_of_episodes_that_are_gone_are_forgotten_in_the_end(tmp_path, index_of):
    run = tmp_path / "run"
    RunWriter(run).begin(CONFIG)
    RunWriter(run).held_out(0, [episode(0, 0, 1)])
    index = index_of(run, tmp_path / "cache")
    for at in range(25):
        RunWriter(run).train(1, groups_of(at, count=20))  # the step is played again: its file is begun anew
        index.refresh()
    (rows,) = index.query("SELECT count(*) FROM words")[0]
    assert 61 <= rows <= 1100
    assert len(dump(index, "group")["found"]["group"]) == 61


def test_a_large_member_that_has_not_ended_is_left_out_whole(tmp_path, index_of):
    run = tmp_path / "run"
    RunWriter(run).begin(CONFIG)
    file = run / "episodes" / "train-000001.jsonl.gz"
    file.parent.mkdir()
    line = b'{"messages": [{"role": "user", "content": "step"}], "problem_id": "q"}\n'
    whole, large = gzip.compress(line), gzip.compress(line * 2000)
    file.write_bytes(whole + large[:-4])
    index = index_of(run, tmp_path / "cache")
    index.refresh()
    assert index.query("SELECT count(*) FROM episodes") == [(1,)]
    file.write_bytes(whole + large)
    index.refresh()
    assert index.query("SELECT count(*), count(DISTINCT line), max(line) FROM episodes") == [(2001, 2001, 2000)]
    assert len(dump(index, "step")["episodes"]) == 2001


def test_an_index_survives_the_end_of_its_process_at_any_moment(tmp_path, index_of):
    run = tmp_path / "run"
    write_run(run, steps=3)
    for number in range(200):  # a little more time each, so that the slowest machine gets through
        index = index_of(run, tmp_path / "cache")
        done = index.refresh(0.0005 * 1.03**number)
        index.close()
        if done:
            break
    fresh = index_of(run, tmp_path / "other")
    fresh.refresh()
    assert dump(index, *WORDS) == dump(fresh, *WORDS)


def test_two_viewers_have_one_index(tmp_path, index_of):
    run = tmp_path / "run"
    writer = write_run(run, steps=2)
    first, second = index_of(run, tmp_path / "cache"), index_of(run, tmp_path / "cache")
    assert first.refresh()
    assert second.refresh()
    assert (first.fills, second.fills) == (True, False)
    writer.train(9, groups_of(9))
    assert not second.refresh(), "another viewer has the lock, and has not read it yet"
    first.refresh()
    assert second.refresh()
    assert dump(second, *WORDS) == dump(first, *WORDS)
    first.close()
    writer.train(10, groups_of(10))
    assert second.refresh(), "whoever is left goes on"
    assert second.fills


def test_a_line_that_cannot_be_read_is_told_by_its_number(tmp_path, index_of):
    file = tmp_path / "eval.jsonl"
    file.write_text('{"messages": [], "problem_id": "q"}\nnot json\n{"messages": [], "problem_id": "q"}\n')
    index = index_of(file, tmp_path / "cache")
    index.refresh()
    (note,) = index.notes()
    assert note.startswith("eval.jsonl, line 2: ")
    assert index.query("SELECT line FROM episodes ORDER BY line") == [(0,), (2,)]


def test_what_an_episode_does_not_say_of_its_problem_stays_as_another_said_it(tmp_path, index_of):
    said = {"problem_id": "q", "task": "sums", "gold": "7", "messages": [{"role": "user", "content": "What?"}]}
    file = tmp_path / "eval.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (said, {"problem_id": "q", "messages": []})))
    index = index_of(file, tmp_path / "cache")
    index.refresh()
    assert index.query("SELECT task, gold, question FROM problems") == [("sums", "7", "What?")]


def test_the_newest_steps_are_read_first(tmp_path):
    write_run(tmp_path / "run", steps=3)
    found = [(source.what, source.split, source.step) for source in line_files_of(tmp_path / "run")]
    assert found == [
        *(("episodes", "eval", 3), ("episodes", "train", 3), ("episodes", "train", 2), ("episodes", "train", 1)),
        *(("episodes", "eval", 0), ("tokens", "train", 3), ("tokens", "train", 2), ("tokens", "train", 1)),
    ]


def test_an_answer_is_kept_until_the_run_changes(tmp_path, index_of):
    writer = write_run(tmp_path / "run", steps=1)
    index = index_of(tmp_path / "run", tmp_path / "cache")
    index.refresh()
    made: list[int] = []

    def answer() -> int:
        made.append(len(made))
        return made[-1]

    assert [index.cached("count", answer) for _ in range(2)] == [0, 0]
    writer.train(9, groups_of(9))
    index.refresh()
    assert [index.cached("count", answer) for _ in range(2)] == [1, 1]


def test_a_thread_that_asks_meanwhile_gets_the_answer_that_another_makes(tmp_path, index_of):
    write_run(tmp_path / "run", steps=1)
    index, found, again = index_of(tmp_path / "run", tmp_path / "cache"), [], threading.Event()
    other = threading.Thread(target=lambda: found.append(index.cached("a", lambda: again.set() or "again")))

    def make():
        other.start()
        assert not again.wait(0.2)
        return "once"

    assert index.cached("a", make) == "once"
    other.join(30)
    assert found == ["once"]


def test_an_answer_does_not_open_an_index_that_was_closed_meanwhile(tmp_path, index_of, monkeypatch):
    write_run(tmp_path / "run", steps=1)
    index = index_of(tmp_path / "run", tmp_path / "cache")

    def make():
        index.close()
        monkeypatch.setattr(index, "_open", lambda: pytest.fail("opened again"))
        return 1

    assert index.cached("a", make) == 1


def test_an_answer_does_not_open_an_index_that_is_closed_before_it_is_stored(tmp_path, index_of, monkeypatch):
    write_run(tmp_path / "run", steps=1)
    index, made = index_of(tmp_path / "run", tmp_path / "cache"), []
    places = index._places

    class Places:
        def __enter__(self):
            if made:
                made.clear()
                index.close()
            places.acquire()

        def __exit__(self, *error):
            places.release()

    monkeypatch.setattr(index, "_places", Places())
    assert index.cached("a", lambda: made.append(1) or 2) == 2
    assert not made
    assert index._readers == []


def test_a_query_beside_another_waits_for_no_connection_that_writes(tmp_path, index_of, monkeypatch):
    write_run(tmp_path / "run", steps=1)
    monkeypatch.setattr(schema, "WAIT_MS", 0)
    index = index_of(tmp_path / "run", tmp_path / "cache")
    with contextlib.closing(sqlite3.connect(index.file)) as writer, index.reading():
        writer.execute("BEGIN IMMEDIATE")
        assert index.query("SELECT 1") == [(1,)]


def test_only_the_first_connection_recreates_tables_of_another_version(tmp_path, index_of):
    write_run(tmp_path / "run", steps=1)
    index = index_of(tmp_path / "run", tmp_path / "cache")
    index.refresh()
    count = "SELECT count(*) FROM episodes"
    with contextlib.closing(sqlite3.connect(index.file)) as other:
        other.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with index.reading():
        assert index.query(count) != [(0,)]
        assert index.cached("a", lambda: 1) == index.cached("a", lambda: 2), "the second connection stores it"
    index.close()
    assert index.query(count) == [(0,)]


def test_an_index_that_is_deleted_while_it_is_open_has_tables_again(tmp_path, index_of):
    write_run(tmp_path / "run", steps=1)
    index = index_of(tmp_path / "run", tmp_path / "cache")
    with index.reading():
        schema.remove(index.file)
        assert index.query("SELECT count(*) FROM episodes") == [(0,)]


def test_a_query_does_not_wait_for_a_longer_one(tmp_path, index_of):
    write_run(tmp_path / "run", steps=1)
    index, found = index_of(tmp_path / "run", tmp_path / "cache"), []
    index.refresh()
    other = threading.Thread(target=lambda: found.extend(index.query("SELECT 1")), daemon=True)
    with index.reading():
        other.start()
        other.join(30)
        assert found == [(1,)]


def test_a_damaged_index_is_made_anew(tmp_path, index_of):
    run = tmp_path / "run"
    write_run(run)
    index = index_of(run, tmp_path / "cache")
    index.refresh()
    before = dump(index, *WORDS)
    index.close()
    index.file.write_bytes(b"no database" * 1000)
    again = index_of(run, tmp_path / "cache")
    again.refresh()
    assert dump(again, *WORDS) == before


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, index_of):
    run = tmp_path / "run"
    write_run(run)
    (tmp_path / "file").write_text("")
    index = index_of(run, tmp_path / "file" / "below")
    assert index.refresh()
    assert index.query("SELECT count(*) FROM episodes") == [(42,)]


def test_nothing_is_written_into_the_run(tmp_path, index_of):
    run = tmp_path / "run"
    write_run(run)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    index = index_of(run, tmp_path / "cache")
    index.refresh()
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


@pytest.mark.parametrize("words", [True, False], ids=["FTS5", "without FTS5"])
def test_a_search_finds_what_the_conversation_says(tmp_path, words, index_of):
    run = tmp_path / "run"
    write_run(run)
    index = index_of(run, tmp_path / "cache")
    index.refresh()
    index.searches_words = index.searches_words and words
    found = dump(index, '"step 2 group 1"', "é member")["found"]
    assert found['"step 2 group 1"'] == ["train-2-3", "train-2-4", "train-2-5"]
    assert len(found["é member"]) == 42
    found = dump(index, "mem", "mem*", "MEMBER e", "++ member", '"group 1"')["found"]
    assert {q: len(keys) for q, keys in found.items()} == {
        "mem": 0,
        "mem*": 42,
        "MEMBER e": 42,
        "++ member": 42,
        '"group 1"': 14,
    }
