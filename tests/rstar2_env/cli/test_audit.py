"""Claims about ``rstar2 audit``."""

from __future__ import annotations

import json

import pytest
from cli_runner import run

from rstar2_env.evaluation.audit import audit

SOUND = "def grade(gold, answer):\n    return float(answer.strip() == gold.strip() != '')\n"
FAULTY = "def grade(gold, answer):\n    return float(answer.startswith(gold))\n"
FEW = ("--golds", "choices", "--grade-timeout", "3")


@pytest.fixture
def grader(tmp_path):
    def write(source):
        (tmp_path / "grader.py").write_text(source)
        return f"{tmp_path}/grader.py:grade"

    return write


def test_it_exits_with_1_lists_the_findings_and_writes_a_page(grader, tmp_path):
    page = tmp_path / "report.html"
    done = run("audit", grader(FAULTY), *FEW, "--report", page, columns=160)
    assert done.exit_code == 1, done.output
    assert "a word with this letter first" in done.output
    assert "score >= 0.5" in done.output
    assert "Wrong answers are accepted" in page.read_text()


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


def test_the_time_limit_holds_while_the_classes_are_read(grader):
    slow = "import time\n" + SOUND.replace("    return", "    time.sleep(0.02)\n    return")
    done = run("audit", grader(slow), "--timeout", "1", columns=400)
    assert done.exit_code == 2, done.output
    assert "grading is so slow" in done.output


def test_each_step_is_told_the_first_before_any_grade(grader):
    told = []
    found = audit(grader(SOUND), golds=["choices"], progress=lambda *step: told.append(step))
    assert str(found).startswith(f"{found.target}: nothing found\n")
    assert found._repr_html_().startswith("<table>")
    assert [number for number, _, _ in told] == list(range(told[0][1]))
    assert told[0][2] == "the form of answers"


@pytest.mark.proof
def test_a_grader_that_pays_everything_is_found(grader):
    done = run("audit", grader("def grade(gold, answer):\n    return 1.0\n"), "--deadline", "3", "--json")
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    assert told["cheapest_exploit"]["answer"] == ""
    assert told["cheapest_exploit"]["paid"] == told["cheapest_exploit"]["golds"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def grade(gold, answer):\n    return 0.0\n", "it rejects the correct answers of every class"),
        ("def grade(gold, answer):\n    return 'good'\n", "the grader returned 'good', expected a number"),
        ("def grade(gold, answer):\n    raise KeyError('tests')\n", "KeyError: 'tests'"),
        ("TOKEN = {}['TOKEN']\n\n\ndef grade(gold, answer):\n    return 1.0\n", "grader.py, line 1)"),
    ],
)
def test_a_grader_that_reads_nothing_is_refused_with_the_reason(grader, source, said):
    done = run("audit", grader(source), columns=400)
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_mistakes_are_told_in_a_line(grader):
    for words, said in (
        (("grader_that_is_not.py:grade",), "does not exist"),
        ((grader(SOUND), "--golds", "integer"), "no class of gold answers named"),
        (("verifier:rulez",), "rulez"),
        (("nemo-gym:rows.jsonl@http://127.0.0.1:9",), "the file rows.jsonl does not exist"),
        (("rstar2/MathTol-v0",), "Did you mean"),
    ):
        done = run("audit", *words)
        assert done.exit_code == 2, done.output
        assert said in done.output


def test_a_grader_that_this_package_refuses_is_refused_without_names_of_its_code():
    done = run("audit", "verifier:nope", columns=400)
    assert done.exit_code == 2
    assert "verifier:nope cannot be audited: There is no verifier named 'nope'" in done.stderr
    assert "registry.py" not in done.stderr
