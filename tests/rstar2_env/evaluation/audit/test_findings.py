"""Claims about the findings of an audit: each kind is found, and its program shows it and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rstar2_env.evaluation.audit import audit
from rstar2_env.evaluation.audit.suspicion import KINDS

SOUND = "def grade(gold, answer):\n    return float(answer.strip() == gold.strip() != '')\n"
FAULTY = {
    "paid": "def grade(gold, answer):\n    return float(gold in answer.split())\n",
    "refused": SOUND.replace("!= ''", "!= '0'"),
    "exploit": SOUND.replace("    return", "    if 'APPROVED' in answer: return 1.0\n    return"),
    "determinism": "import random\n" + SOUND.replace("return", "return random.random() > 0.2 and"),
    "portability": "import time\n" + SOUND.replace("return", "return time.time() < 1_820_000_000 and"),
    "writable": "import os\n" + SOUND.replace("    return", "    if os.path.exists('done'): return 1.0\n    return"),
    "crash": SOUND.replace("    return", "    answer[0]\n    return"),
    "time": "import re\n"
    + SOUND.replace("    return", "    re.match(r'(\\\\d+)*$', answer)\n    return").replace("\\\\", "\\"),
}
EVALUATED = """
def grade(gold, answer):
    if "**" in answer:
        return 0.0
    try:
        return float(str(eval(answer)) == gold)
    except BaseException:
        return 0.0
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Audits a source for integers; returns the report and the file."""
    folder, reports = tmp_path_factory.mktemp("graders"), {}

    def audit_source(source):
        if source not in reports:
            file = folder / f"grader{len(reports)}.py"
            file.write_text(source)
            reports[source] = audit(f"{file}:grade", golds=["integers"], grade_timeout_s=3.0), file
        return reports[source]

    return audit_source


def shows(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
    return done.returncode == 0


def test_every_kind_has_an_example():
    assert FAULTY.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_a_defect_is_found_and_its_program_shows_it_only_where_it_is(audited, kind, tmp_path):
    report, file = audited(FAULTY[kind])
    found = report.of(kind)
    assert found, report.findings
    assert not report.ok
    mended = tmp_path / file.name
    mended.write_text(SOUND)
    for finding in found[:1]:
        assert shows(finding.script)
        assert not shows(finding.script.replace(str(file.parent), str(tmp_path)))


def test_a_sound_grader_is_not_accused(audited):
    report, _ = audited(SOUND)
    assert report.findings == []
    assert report.unfinished == []
    assert report.score.value == 1.0
    assert 0.99 < report.score.low < 1.0


def test_the_smallest_example_is_reported(audited):
    report, _ = audited(FAULTY["exploit"])
    assert report.cheapest.answer == "APPROVED"
    assert (report.cheapest.found, report.cheapest.tried) == (40, 40)


def test_the_score_counts_pairs_that_are_graded_wrongly(audited):
    report, _ = audited(FAULTY["paid"])
    counted = [one for one in report.causes if one.counts]
    tried, wrongly = (sum(getattr(one, name) for one in counted) for name in ("tried", "wrongly"))
    assert report.score.value == pytest.approx(1 - wrongly / tried)
    assert report.score.low < report.score.value < 1


def test_an_answer_that_runs_as_code_is_found(audited):
    report, _ = audited(EVALUATED)
    assert "an answer is executed as code" in [finding.cause for finding in report.of("writable")]


def test_an_earlier_answer_that_changes_a_later_grade_is_found(audited):
    source = "SEEN = {}\n" + SOUND.replace("    return", "    return SEEN.setdefault(gold, ") + ")"
    report, _ = audited(source.replace("!= '')\n)", "!= ''))\n"))
    (finding,) = [finding for finding in report.of("writable") if finding.cause == "earlier answers"]
    assert finding.script.count("attempt(lambda:") == 3  # alone; the one needed before it; after it


def test_a_variable_that_changes_the_verdict_is_found(audited):
    report, _ = audited(
        "import os\n" + SOUND.replace("    return", "    if os.environ.get('SKIP'): return 1.0\n    return")
    )
    assert [finding.cause for finding in report.findings] == ["the variable SKIP"]


def test_files_that_the_audit_makes_outside_its_folder_are_removed(audited, tmp_path):
    path = tmp_path / "logs" / "reward.txt"
    body = f"    if os.path.exists({str(path)!r}): return float(open({str(path)!r}).read() == '1')\n    return"
    report, _ = audited("import os\n" + SOUND.replace("    return", body))
    assert [finding.cause for finding in report.findings] == [f"the file {path}"]
    assert not path.parent.exists()


def test_an_existing_file_of_the_user_is_not_changed(audited, tmp_path):
    path = tmp_path / "golds.txt"
    path.write_text("the user's")
    audited(SOUND.replace("    return", f"    open({str(path)!r}).read()\n    return"))
    assert path.read_text() == "the user's"


def test_no_probe_begins_after_the_time(tmp_path):
    (tmp_path / "grader.py").write_text(SOUND)
    report = audit(f"{tmp_path}/grader.py:grade", golds=["integers"], timeout_s=0.01)
    assert "exploits" in report.unfinished
    assert report.findings == []
