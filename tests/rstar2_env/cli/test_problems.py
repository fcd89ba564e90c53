"""Claims about ``rstar2 problems``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import run


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps({"question": f"{n}+1?", "answer": n + 1}) + "\n" for n in range(6)))
    return path


def test_problems_shows_the_first_ones(file):
    shown = run("problems", "show", file, "-n", "2")
    assert "sums-1" in shown.output
    assert "sums-3" not in shown.output
    lines = run("problems", "show", "arithmetic:level=3", "-n", "2", "--split", "test", "--json").stdout.splitlines()
    assert json.loads(lines[1])["id"] == "arithmetic:level=3/test/1"


def test_problems_counts(file):
    assert "whole number 6" in run("problems", "stats", file).output
    assert json.loads(run("problems", "stats", "arithmetic", "-n", "50", "--json").stdout)["problems"] == 50


def test_all_that_is_wrong_with_a_file_is_told_in_one_run(tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"question": "q"}\n{"question": "q", "answer": 1}\nnot json\n{"question": "", "answer": 1}\n')
    done = run("problems", "stats", bad)
    assert done.exit_code == 2
    for said in (
        "3 records of",
        "bad.jsonl:1: the field 'answer'",
        "bad.jsonl:3: expected",
        "bad.jsonl:4: the field 'question'",
    ):
        assert said in done.output
    bad.write_text('{"question": "q"}\n' * 1000)
    lines = run("problems", "stats", bad).output.splitlines()
    assert len(lines) == 13
    assert lines[-2:] == [
        "  and perhaps more: the rest of the file was not read.",
        "docs: rstar2 help troubleshooting#problems",
    ]


def test_a_split_that_a_file_does_not_have_is_refused_and_none_is_made_up(file):
    done = run("problems", "stats", file, "--split", "nonsense")
    assert done.exit_code == 2
    assert "there is no split 'nonsense'" in " ".join(done.output.split())
    assert "sums (" not in run("problems", "stats", file).output


def test_problems_says_what_is_wrong_with_a_file(tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"question": "q"}\n')
    done = run("problems", "stats", bad)
    assert done.exit_code == 2
    assert "bad.jsonl:1: the field 'answer' is missing" in " ".join(done.output.split())


@pytest.fixture
def files(tmp_path):
    train, bench = tmp_path / "train.jsonl", tmp_path / "bench.csv"
    questions = [f"Question {n} asks about one of ten different things in a row" for n in range(5)]
    questions.append("What is the number of ways to put eight balls in boxes")
    train.write_text("".join(json.dumps({"question": q, "answer": 1}) + "\n" for q in questions))
    bench.write_text("problem,answer\nFind the number of ways to put eight balls in boxes!,3\n")
    return train, bench


def test_decontaminate_writes_what_overlaps_nothing_and_says_why(files, tmp_path):
    train, bench = files
    out, report = tmp_path / "clean.jsonl", tmp_path / "why.jsonl"
    command = [
        "problems",
        "decontaminate",
        "--problems",
        train,
        "--against",
        f"{bench}:question=problem",
        "--out",
        out,
    ]
    done = run(*command, "--report", report)
    assert done.exit_code == 0, done.output
    assert len(out.read_text().splitlines()) == 5
    (why,) = map(json.loads, report.read_text().splitlines())
    assert why == {
        "id": "train-6",
        "benchmark": "bench",
        "benchmark_id": "bench-1",
        "words": "the number of ways to put eight balls",
    }
    assert "overlap with bench" in done.output
    again = run(*command)
    assert again.exit_code == 2
    assert "already exists" in " ".join(again.output.split())


def test_decontaminate_takes_several_benchmarks_and_another_run(files, tmp_path):
    train, bench = files
    done = run(
        *("problems", "decontaminate", "--problems", train, "--against", f"{bench}:question=problem", train),
        *("--out", tmp_path / "c.jsonl", "--ngram", "3", "--json"),
    )
    figures = json.loads(done.stdout)
    assert (figures["kept"], figures["dropped"]) == (0, 6)
    assert sum(figures["by_benchmark"].values()) == len(figures["why"]) == 6


def test_write_makes_jsonl_of_any_source(files, tmp_path):
    out = tmp_path / "out.jsonl"
    assert run("problems", "write", f"{files[1]}:question=problem", "--out", out).exit_code == 0
    assert json.loads(out.read_text())["id"] == "bench-1"
    assert run("problems", "write", "arithmetic", "-n", "7", "--out", out, "--overwrite").exit_code == 0
    assert len(out.read_text().splitlines()) == 7


def test_sources_lists_every_set_with_its_licence():
    listed = json.loads(run("problems", "sources", "--json").stdout)
    assert listed["gsm8k"]["licence"] == "mit"
    shown = run("problems", "sources").output
    assert "cc-by-nc-sa-4.0" in shown
    assert {line.split()[0] for line in shown.splitlines() if line and line[0] != " "} >= set(listed)
    assert max(map(len, shown.splitlines())) <= 80
    one = run("problems", "sources", "gsm8k").output
    assert "openai/gsm8k (main)" in one
    assert "train 7473, test 1319" in one
    assert "Did you mean 'gsm8k'" in run("problems", "sources", "gsm9k").output


def test_stats_tells_how_the_answers_look(files):
    figures = json.loads(run("problems", "stats", files[0], "--json").stdout)
    assert (figures["problems"], figures["answers"]) == (6, {"whole number": 6})
