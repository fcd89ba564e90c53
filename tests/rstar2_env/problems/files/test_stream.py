"""Claims about sources that hold no text: they give what a source in memory gives, to any thread and process."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rstar2_env.core.errors import ConfigurationError, ProblemFormatError, UnknownNameError
from rstar2_env.problems import FiniteSource, LazySource, load_problems
from rstar2_env.problems import load as load_module


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "many.jsonl"
    lines = [json.dumps({"question": f"quest\u2028ion {n % 250}", "answer": n, "level": n % 5}) for n in range(300)]
    lines[7] += "\n"  # a blank line
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    return path


@pytest.mark.parametrize("options", [{}, {"where": "level < 2"}, {"unique": True}, {"holdout": 0.3, "split": "test"}])
def test_it_gives_what_a_source_in_memory_gives(file, options):
    lazy, held = (load_problems(file, stream=stream, **options) for stream in (True, False))
    assert isinstance(lazy, LazySource)
    assert isinstance(lazy, FiniteSource)
    assert isinstance(held, FiniteSource)
    assert list(lazy) == list(held)
    assert list(lazy.ids) == list(held.ids)
    assert (lazy.name, lazy.split, len(lazy)) == (held.name, held.split, len(held))
    assert lazy.ids[-1] == held.ids[-1]
    assert lazy.ids[2:4] == list(held.ids[2:4])
    assert [lazy.get(name) for name in held.ids] == list(held)
    assert [lazy.sample(np.random.default_rng(n)) for n in range(9)] == [
        held.sample(np.random.default_rng(n)) for n in range(9)
    ]


def test_a_large_file_is_streamed_without_being_asked(file, monkeypatch):
    monkeypatch.setattr(load_module, "STREAM_FROM_BYTES", 1000)
    assert isinstance(load_problems(file), LazySource)
    assert not isinstance(load_problems(file, stream=False), LazySource)


def test_threads_and_pickled_copies_read_the_same(file):
    source = load_problems(file, stream=True)
    copy = pickle.loads(pickle.dumps(source))
    expected = [source[n] for n in range(300)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(source.__getitem__, range(300))) == expected
        assert list(pool.map(copy.__getitem__, range(300))) == expected


def test_it_holds_no_text(file):
    state = pickle.dumps(load_problems(file, stream=True))
    assert b"quest" not in state
    assert len(state) < 300 * 60 + 2000


def test_a_bad_line_is_found_when_the_source_is_made(file):
    with file.open("a") as out:
        out.write('\n{"question": "q"}\n')
    with pytest.raises(ProblemFormatError, match=r"many\.jsonl:302.*'answer' is missing"):
        load_problems(file, stream=True)


def test_two_lines_with_one_id_are_both_named(tmp_path):
    path = tmp_path / "twice.jsonl"
    record = {"id": "x", "question": "q", "answer": "1"}
    path.write_text("".join(json.dumps({**record, "id": name}) + "\n" for name in "xyx"))
    with pytest.raises(ProblemFormatError, match=r"twice\.jsonl:3.*the id 'x' is already used in line 1"):
        load_problems(path, stream=True)


def test_an_unknown_id_and_an_index_outside_are_errors(file):
    source = load_problems(file, stream=True)
    with pytest.raises(UnknownNameError, match="from 'many-1' to 'many-301'"):
        source.get("many-8000")
    with pytest.raises(IndexError, match="0 to 299"):
        source[300]


def test_a_file_that_changed_since_is_an_error(file):
    source = load_problems(file, stream=True)
    with file.open("a") as out:
        out.write("\n")
    with pytest.raises(ProblemFormatError, match="has changed"):
        source[0]


def test_an_empty_file_and_one_that_is_not_there_are_errors(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(ProblemFormatError, match="not contain any problems"):
        load_problems(tmp_path / "empty.jsonl", stream=True)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_problems(tmp_path / "none.jsonl", stream=True)


def test_a_format_that_cannot_be_streamed_says_what_to_do(tmp_path):
    (tmp_path / "a.csv").write_text("question,answer\nq,1\n")
    with pytest.raises(ConfigurationError, match="rstar2 problems write"):
        load_problems(tmp_path / "a.csv", stream=True)
