"""Claims about the process in which the audited code runs."""

from __future__ import annotations

import os

import pytest

from rstar2_env.evaluation.audit.process import AuditCall, GraderProcess, TargetError


@pytest.fixture
def started(tmp_path):
    made = []

    def start(body, **options):
        made.append(GraderProcess(f"def grade(gold, answer, question=''):\n    {body}\n", tmp_path / "work", **options))
        return made[-1]

    yield start
    for process in made:
        process.stop()


def test_a_grade_that_takes_too_long_ends_and_the_next_one_is_graded(started):
    process = started("import time; time.sleep(600 if answer == 'long' else 0); return 1", grade_timeout_s=1.0)
    first, second, third = process.grade([AuditCall("5", "5"), AuditCall("5", "long"), AuditCall("5", "6")])
    assert (first.score, second.hung, third.score) == (1.0, True, 1.0)


def test_a_target_that_ends_its_process_is_a_failed_grade(started):
    ended, other = started("import os; answer == 'end' and os._exit(3); return 1").grade(
        [AuditCall("5", "end"), AuditCall("5", "6")]
    )
    assert ended.error == "ProcessEnded: exit code 3"
    assert other.score == 1.0


def test_an_exception_is_a_grade_with_its_name(started):
    (grade,) = started("return float(answer)").grade([AuditCall("5", "five")])
    assert grade.score is None
    assert grade.error.startswith("ValueError: could not convert")


@pytest.mark.parametrize(("body", "error"), [("return float('nan')", "ValueError"), ("return 'yes'", "TypeError")])
def test_a_grade_that_is_not_a_finite_number_is_an_error(started, body, error):
    (grade,) = started(body).grade([AuditCall("5", "5")])
    assert grade.verdict == (None, error, False)


def test_what_the_target_prints_and_reads_does_not_reach_the_audit(started):
    process = started("import sys; print('{\"score\": 1}', flush=True); return float(sys.stdin.read() != '')")
    assert [grade.score for grade in process.grade([AuditCall("5", "5"), AuditCall("5", "6")])] == [0.0, 0.0]


def test_the_files_and_variables_that_the_target_reads_are_reported(started, tmp_path):
    body = "import os; os.path.exists('flag'); os.environ.get('MODE'); open('log', 'w').close(); return 0"
    process = started(body, trace=True)
    process.grade([AuditCall("5", "5")])
    files, _, variables = process.traced()
    assert files == {str(tmp_path / "work" / "flag"): False, str(tmp_path / "work" / "log"): True}
    assert "MODE" in variables


def test_variables_are_set_and_removed(started):
    os.environ["AUDIT_TEST_GONE"] = "1"
    try:
        body = "import os; return float(os.environ.get('NEW') == '7' and 'AUDIT_TEST_GONE' not in os.environ)"
        (grade,) = started(body, variables={"NEW": "7", "AUDIT_TEST_GONE": None}).grade([AuditCall("5", "5")])
    finally:
        del os.environ["AUDIT_TEST_GONE"]
    assert grade.score == 1.0


def test_a_setup_that_fails_says_why(tmp_path):
    with (
        GraderProcess("import no_such_module", tmp_path) as process,
        pytest.raises(TargetError, match="no_such_module"),
    ):
        process.grade([AuditCall("5", "5")])


@pytest.mark.parametrize(
    ("body", "file"),
    [
        ("import sys; sys.path.insert(0, ''); __import__('no_module_of_mine')", "no_module_of_mine.py"),
        ("import subprocess, sys; subprocess.run([sys.executable, 'check.py'], stderr=-3)", "check.py"),
    ],
)
def test_modules_and_programs_of_the_current_folder_are_reported(started, tmp_path, body, file):
    process = started(f"{body}; return 0", trace=True)
    process.grade([AuditCall("5", "5")])
    files, _, _ = process.traced()
    assert files.get(str(tmp_path / "work" / file)) is False


def test_folders_whose_entries_are_read_are_reported_within_the_current_folder(started, tmp_path):
    process = started("import os; os.listdir('.'); os.listdir('..'); return 0", trace=True)
    process.grade([AuditCall("5", "5")])
    assert process.traced()[1] == [str(tmp_path / "work")]


def test_modules_are_not_reported_if_the_current_folder_is_not_searched(started):
    process = started("__import__('no_module_of_mine')", trace=True)
    process.grade([AuditCall("5", "5")])
    assert [file for file in process.traced()[0] if file.endswith("no_module_of_mine.py")] == []
