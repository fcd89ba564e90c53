"""The runner of the tests: a test that fails beside others and passes alone is told apart from one that fails."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import groups
import passes
import pytest
from places import ROOT, SUPPORT

FAILS_ONCE = """
from pathlib import Path

def test_steady():
    pass

def test_unsteady():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
FAILS = "\ndef test_wrong():\n    assert False\n"


@pytest.fixture
def folder():
    """A folder below the root: ids of tests elsewhere are no paths."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="made-tests-") as made:
        yield Path(made)


def run(folder: Path, source: str) -> tuple[int, str]:
    file = folder / "test_made.py"
    file.write_text(source)
    words = [sys.executable, str(SUPPORT / "passes.py"), "--pass", "fast", str(file), "-p", "no:cacheprovider"]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=800, env={**os.environ, "RSTAR2_TEST_RESULTS": str(folder)}
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_what_fails_beside_others_and_passes_alone_is_told(folder):
    code, said = run(folder, FAILS_ONCE)
    assert code == 0, said
    assert "UNSTEADY" in said
    assert "2 passed, 0 failed, 0 skipped, 1 unsteady" in said


@pytest.mark.slow
def test_what_fails_twice_fails(folder):
    code, said = run(folder, FAILS_ONCE + FAILS)
    assert code == 1, said
    assert "2 passed, 1 failed, 0 skipped, 1 unsteady" in said


FAILS_WITH_ITS_END = """
import pytest
from pathlib import Path

@pytest.fixture
def left():
    yield Path(__file__).with_suffix(".seen")
    assert Path(__file__).with_suffix(".ended").exists()

def test_unsteady(left):
    first = not left.exists()
    left.touch()
    if not first:
        left.with_suffix(".ended").touch()
    assert not first
"""


@pytest.mark.slow
def test_a_test_that_fails_and_whose_end_fails_is_one_test(folder):
    code, said = run(folder, FAILS_WITH_ITS_END)
    assert code == 0, said
    assert "1 passed, 0 failed, 0 skipped, 1 unsteady" in said


@pytest.mark.slow
def test_what_is_skipped_when_it_runs_again_has_not_passed(folder):
    source = FAILS_ONCE.replace(
        "    assert not first", "    if not first:\n        pytest.skip()\n    assert not first"
    )
    code, said = run(folder, "import pytest\n" + source)
    assert code == 1, said
    assert "1 passed, 1 failed, 0 skipped" in said


@pytest.mark.slow
def test_more_than_a_few_failures_are_not_run_again(folder):
    code, said = run(folder, "".join(FAILS.replace("wrong", f"wrong_{number}") for number in range(41)))
    assert code == 1, said
    assert "once more" not in said
    assert "41 failed" in said


REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_passes" name="a" time="1.5"/>
<testcase classname="tests.test_passes.TestClass" name="b" time="2"/>
<testcase classname="tests.trainers.test_matrix" name="c" time="4"/>
</testsuite></testsuites>"""


def test_the_seconds_of_each_file_are_kept_for_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "RESULTS", tmp_path)
    (tmp_path / "rest.xml").write_text(REPORT)
    (tmp_path / passes.DURATIONS).write_text('{"tests/test_docs.py": 9.0, "tests/test_passes.py": 1.0}')
    seconds = passes.file_seconds([tmp_path / "rest.xml", tmp_path / "a pass that did not run.xml"])
    assert seconds == {"tests/test_passes.py": 3.5, "tests/trainers/test_matrix.py": 4.0}
    passes.keep_durations(seconds)
    assert json.loads((tmp_path / passes.DURATIONS).read_text()) == {
        "tests/test_docs.py": 9.0,
        "tests/test_passes.py": 3.5,
        "tests/trainers/test_matrix.py": 4.0,
    }


def test_the_seconds_of_long_files_are_recorded_in_the_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "RESULTS", tmp_path)
    monkeypatch.setattr(passes, "RECORDED", tmp_path / "recorded.json")
    passes.keep_durations({"tests/test_docs.py": 9.4, "tests/test_passes.py": 1.0, "tests/test_removed.py": 99.0})
    passes.record_durations()
    assert json.loads((tmp_path / "recorded.json").read_text()) == {"tests/test_docs.py": 9}
    assert {name for name in json.loads(groups.RECORDED.read_text()) if not (ROOT / name).exists()} == set()


def test_a_pass_that_collects_a_folder_for_what_is_served_tells_pytest_so(tmp_path):
    words = passes.command(passes.PASSES["rest"], [], tmp_path / "report.xml")
    assert "--served-in=tests/trainers" in words
    assert passes.command(passes.PASSES["trainers"], [], tmp_path / "report.xml")[-1] == "tests/trainers"


def test_the_files_that_the_fast_pass_leaves_out_are_there():
    lines = [line for line in (ROOT / "tests" / "lengthy.txt").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not (ROOT / line).exists()] == []
    assert "--without-lengthy" in passes.command(passes.PASSES["fast"], [], Path("report.xml"))
    assert "--without-lengthy" not in passes.command(passes.PASSES["rest"], [], Path("report.xml"))


@pytest.mark.parametrize(
    ("expression", "unwanted"),
    [
        ("not slow and not train", {"slow", "train"}),
        ("not proof and not (deadlines and not served)", {"proof"}),
        ("deadlines and not proof", set()),
        ("not (slow or train)", set()),
        ("", set()),
    ],
)
def test_files_that_are_marked_with_what_is_not_run_are_not_imported(expression, unwanted):
    assert groups.unwanted_marks(expression) == unwanted
