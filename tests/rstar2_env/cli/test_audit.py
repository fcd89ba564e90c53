"""Claims about ``rstar2 audit``."""

from __future__ import annotations

import json

import pytest
from cli_runner import run

SOUND = "def grade(gold, answer):\n    return float(answer.strip() == gold.strip() != '')\n"
FAULTY = "def grade(gold, answer):\n    return float(answer.startswith(gold))\n"
FEW = ("--golds", "choices", "--deadline", "3")


@pytest.fixture
def grader(tmp_path):
    def write(source):
        (tmp_path / "grader.py").write_text(source)
        return f"{tmp_path}/grader.py:grade"

    return write


def test_it_exits_with_1_lists_the_findings_and_writes_a_page(grader, tmp_path):
    page = tmp_path / "report.html"
    done = run("audit", grader(FAULTY), *FEW, "--html", page, columns=160)
    assert done.exit_code == 1, done.output
    assert "a word with this letter first" in done.output
    assert "score >= 0.5" in done.output
    assert "Wrong answers are paid" in page.read_text()


def test_it_exits_with_0_when_nothing_is_found_and_prints_one_json_object(grader):
    done = run("audit", grader(SOUND), *FEW, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["ok"], told["score"], told["golds"]) == (True, 1.0, {"choices": 5})


def test_a_file_that_it_did_not_write_is_kept(grader, tmp_path):
    page = tmp_path / "report.html"
    page.write_text("mine")
    done = run("audit", grader(SOUND), "--report", page)
    assert done.exit_code == 2
    assert page.read_text() == "mine"


def test_mistakes_are_told_in_a_line(grader):
    for words, said in (
        (("grader_that_is_not.py:grade",), "there is no such file"),
        ((grader(SOUND), "--golds", "integer"), "there is no class integer"),
        (("verifier:rulez",), "rulez"),
        (("rstar2/MathTol-v0",), "Did you mean"),
    ):
        done = run("audit", *words)
        assert done.exit_code == 2, done.output
        assert said in done.output
