"""The runner of the tests: a test that fails beside others and passes alone is told apart from one that fails."""

import subprocess
import sys
import tempfile
from pathlib import Path

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
    done = subprocess.run(words, capture_output=True, text=True, timeout=800)
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


@pytest.mark.slow
def test_more_than_a_few_failures_are_not_run_again(folder):
    code, said = run(folder, "".join(FAILS.replace("wrong", f"wrong_{number}") for number in range(41)))
    assert code == 1, said
    assert "once more" not in said
    assert "41 failed" in said
