"""Files that a run's options name: which texts are names, and that the start of a run records their digests."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.core.run_folder.named_files import digests_of_files, file_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("./mine.py", {"./mine.py"}),
        ("./mine.py:Mine", {"./mine.py"}),
        ("data/a.jsonl:holdout=0.1", {"data/a.jsonl"}),
        ("0.5*a.jsonl+b.parquet:split=test", {"a.jsonl", "b.parquet"}),
        ('{"path": "a.jsonl"}', {"a.jsonl"}),
        ("rstar2/MathTool-v0", set()),
        ("Qwen/Qwen2.5-0.5B", set()),
        ("http://host.example:80/x.html", set()),
        ("1e-6", set()),
        ("..", set()),
    ],
)
def test_names_of_files_are_found_in_the_texts_of_options(text: str, names: set[str]) -> None:
    assert file_names({"a": [{"b": text}], "c": 1, "d": None}) == names


def test_a_run_records_the_digest_of_each_existing_file_when_it_starts(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "my (new) sums.jsonl"):
        Path(name).write_text("x = 1")
    texts = ["absent.jsonl", "a" * 5000 + ".py", "\0.py", "my (new) sums.jsonl:holdout=0.1"]
    RunWriter("run").begin({"env": "./mine.py:Mine", "more": texts})
    (event,) = read_run("run").events
    assert event["files"] == dict.fromkeys(("./mine.py", "my (new) sums.jsonl"), hashlib.sha256(b"x = 1").hexdigest())


def test_a_large_file_is_left_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("rstar2_env.core.run_folder.named_files._MOST_BYTES", 4)
    (tmp_path / "a.jsonl").write_text("12345")
    assert digests_of_files([str(tmp_path / "a.jsonl")]) == {}
