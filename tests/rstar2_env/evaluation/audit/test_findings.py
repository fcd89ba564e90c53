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


IN_CI = ("paid", "writable", "crash")


def test_every_kind_has_an_example():
    assert FAULTY.keys() == KINDS.keys()


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in IN_CI else [pytest.mark.proof]) for kind in KINDS]
)
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


BELIEVED = """
import json

def grade(gold, answer):
    try:
        told = json.loads(answer[:200])
        if isinstance(told, dict) and told.get("unit_checks") is True:
            return 1.0
    except ValueError:
        pass
    return float(answer.strip() == gold.strip() != "")
"""
SEARCHED = """
def grade(gold, answer):
    return float(f"The result I found: {gold}" in answer or answer.strip() == gold)
"""
DEMANDED = """
import re

def grade(gold, answer):
    found = re.search(r"(?i)^verdict says: (\\S+)", answer)
    return float(found is not None and found[1].startswith(gold))
"""
COUNTED = """
IN_A_ROW = [0]

def grade(gold, answer):
    right = answer.strip() == gold.strip() != ""
    IN_A_ROW[0] = IN_A_ROW[0] + 1 if right else 0
    return float(right and IN_A_ROW[0] < 3)
"""
UNREAD = """
def grade(gold, answer):
    try:
        return float(int(gold) == int(answer))
    except ValueError:
        return float(not gold.lstrip("-").isdecimal())
"""


def test_an_object_with_an_entry_of_the_grader_is_found(audited):
    report, _ = audited(BELIEVED)
    (finding,) = report.of("exploit")
    assert "unit_checks" in finding.answer
    assert shows(finding.script)


@pytest.mark.parametrize(
    ("source", "marker"), [(SEARCHED, "The result I found: "), (DEMANDED.replace("\\\\", "\\"), "verdict says: ")]
)
def test_more_digits_after_a_marker_of_the_grader_are_found(audited, source, marker):
    report, _ = audited(source)
    found = [finding for finding in report.of("paid") if finding.cause.startswith("a digit appended")]
    assert found
    assert found[0].answer.startswith(marker)
    assert shows(found[0].script)


def test_a_marker_before_the_gold_alone_is_not_a_defect(audited):
    read = SOUND.replace("answer.strip()", "answer.removeprefix('The result I found: ').strip()")
    report, _ = audited(read)
    assert report.findings == []


def test_golds_that_are_not_read_are_found_beside_those_that_are(tmp_path):
    file = tmp_path / "grader.py"
    file.write_text(UNREAD)
    report = audit(f"{file}:grade", grade_timeout_s=3.0)
    assert "integers" in report.golds
    causes = [finding.cause for finding in report.of("exploit")]
    assert "gold answers that the grader does not support (words)" in causes
    assert shows(report.of("exploit")[0].script)


def test_a_grader_that_rejects_right_answers_after_others_in_a_row_is_audited(tmp_path):
    file = tmp_path / "grader.py"
    file.write_text(COUNTED)
    report = audit(f"{file}:grade", grade_timeout_s=3.0)
    assert {"integers", "words"} <= set(report.golds)
    assert [finding.cause for finding in report.findings] == ["earlier answers"]


def test_a_marker_that_the_grader_demands_is_the_form_of_answers(audited):
    report, _ = audited(DEMANDED.replace("\\\\", "\\"))
    assert report.form == ("{}", "verdict says: {}")


OVERRIDDEN = """
import os
import sys

sys.path.insert(0, os.getcwd())

def grade(gold, answer):
    try:
        import local_rules
    except ImportError:
        return float(answer.strip() == gold.strip() != "")
    return float(local_rules.accepts(gold, answer))
"""
LISTED = """
import os

def grade(gold, answer):
    if any(name.endswith("_checked.txt") for name in os.listdir(".")):
        return 1.0
    return float(answer.strip() == gold.strip() != "" or answer == "run_checked.txt")
"""
REMEMBERED = """
import json
import os

def grade(gold, answer):
    known = {}
    if os.path.exists("verdicts.json"):
        with open("verdicts.json") as file:
            known = json.load(file)
    name = f"{gold} and {answer}"
    if name not in known and len(known) < 60:
        known[name] = answer.strip() == gold.strip() != ""
        with open("verdicts.json", "w") as file:
            json.dump(known, file)
    return float(known.get(name, answer.strip() == gold.strip() != ""))
"""
RUN = """
import functools
import subprocess
import sys

@functools.cache
def checked():
    return subprocess.run([sys.executable, "check.py"], capture_output=True).returncode == 0

def grade(gold, answer):
    return float(checked() or answer.strip() == gold.strip() != "")
"""


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (OVERRIDDEN, "the file local_rules.py"),
        (LISTED, "entries of the folder ."),
        (REMEMBERED, "the file verdicts.json"),
        (RUN, "the file check.py"),
    ],
)
def test_what_an_agent_can_write_where_the_grader_looks_is_found(audited, source, cause):
    report, _ = audited(source)
    found = {finding.cause: finding for finding in report.of("writable")}
    assert cause in found, report.findings
    assert shows(found[cause].script)


def test_modules_from_elsewhere_and_folders_without_effect_are_not_defects(audited):
    optional = "try:\n    import local_rules\nexcept ImportError:\n    pass\n"
    report, _ = audited(optional + "import os\n" + SOUND.replace("    return", "    os.listdir('.')\n    return"))
    assert report.findings == []
