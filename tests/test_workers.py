"""Workers that run the tests: each test runs once, whatever a worker dies of."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from places import ROOT, SUPPORT

pytestmark = pytest.mark.slow

ALONE = """
import os
import tempfile
import time
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KEPT, OWN = tempfile.TemporaryDirectory(), []


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory):
    yield tmp_path_factory.mktemp("session")
    (HERE / f"session-{os.getpid()}").touch()


@pytest.fixture(scope="module")
def module_value():
    yield os.getpid()
    (HERE / f"module-{os.getpid()}").touch()


@pytest.mark.alone
@pytest.mark.parametrize("number", range(4))
def test_alone(number, session_folder, module_value):
    (HERE / f"where-{number}").write_text(f"{os.getpid()} {session_folder.parent.name}")
    warnings.warn(f"warning {number}")
    OWN.append(tempfile.TemporaryDirectory())
    time.sleep(0.2)


def test_captured(capfd):
    os.system("echo said")
    assert capfd.readouterr().out == "said\\n"


def test_wrong():
    print("said before it failed")
    assert 1 == 2


def test_skipped():
    pytest.skip("for a reason")


def test_last():
    time.sleep(1.5)  # the other worker has ended meanwhile
    assert Path(KEPT.name).is_dir()
"""
"""Tests that tell where they ran."""

DIES = """
import os
import signal

import pytest


@pytest.fixture(scope="session")
def ends_badly():
    yield
    raise OSError("the server did not end")


def test_before():
    pass


def test_kills_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def test_after(ends_badly):
    pass
"""


SERVED = """
import os
import threading
from pathlib import Path

import pytest

THREADS = []


@pytest.fixture(scope="session")
def chromium():
    THREADS.append(threading.Thread(target=threading.Event().wait, args=(0.5,)))
    THREADS[0].start()


@pytest.mark.parametrize("number", range(2))
def test_served(number, chromium):
    (Path(__file__).parent / f"where-{number}").write_text(f"{os.getpid()} served")


@pytest.mark.alone
@pytest.mark.parametrize("number", range(2, 5))
def test_other(number):
    assert not THREADS
    (Path(__file__).parent / f"where-{number}").write_text(f"{os.getpid()} other")
"""

STUCK = """
import signal
import time

import pytest


@pytest.mark.timeout(1)
def test_waits():
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.sleep(600)


def test_after():
    pass
"""
"""One that pytest's timeout does not reach."""


def run(source: str, *options: str) -> SimpleNamespace:
    """Run a file of tests in two workers, in a folder below the root: ids of tests elsewhere are no paths."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="made-tests-") as made:
        folder = Path(made)
        (folder / "test_made.py").write_text(source)
        words = [sys.executable, "-m", "pytest", "-p", "groups", "-p", "failed_ids", "-p", "workers", "--workers=2"]
        words += ["-n", "0", "-p", "no:cacheprovider", f"--junitxml={folder / 'report.xml'}", str(folder), *options]
        given = {"PYTHONPATH": str(SUPPORT), "RSTAR2_FAILED_IDS": str(folder / "failed")}
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **given}, timeout=300)
        report, failed = folder / "report.xml", folder / "failed"
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        return SimpleNamespace(
            code=done.returncode,
            said=done.stdout + done.stderr,
            cases={case.get("name"): case for case in cases},
            where=[file.read_text().split() for file in sorted(folder.glob("where-*"))],
            failed=[line.partition("::")[2] for line in failed.read_text().splitlines()] if failed.exists() else [],
            left=sorted(path.name.partition("-")[0] for path in folder.iterdir() if "-" in path.name),
        )


@pytest.fixture(scope="module")
def ran():
    return run(ALONE)


@pytest.fixture(scope="module")
def died():
    return run(DIES)


def test_every_test_runs_once_and_is_counted_once(ran):
    assert "1 failed, 6 passed, 1 skipped, 4 warnings" in ran.said
    assert len(ran.cases) == 8
    assert ran.code == 1
    assert ran.failed == ["test_wrong"]


def test_what_a_failed_test_printed_is_shown(ran):
    assert ran.said.count("said before it failed\n") == 1


def test_two_processes_run_them_each_with_a_folder_of_its_own(ran):
    assert len(ran.where) == 4
    processes, folders = zip(*ran.where, strict=True)
    assert len(set(processes)) == len(set(folders)) == len({tuple(place) for place in ran.where}) == 2


def test_fixtures_of_a_session_end_once_in_each_worker(ran):
    assert ran.left.count("session") == 2


def test_what_was_made_before_the_fork_stays_when_a_worker_ends(ran):
    assert ran.cases["test_last"].find("failure") is None


def test_fixtures_of_a_module_end_in_each_worker(ran):
    assert ran.left.count("module") == 2


def test_a_worker_that_dies_fails_its_test_and_another_runs_the_rest(died):
    assert died.cases["test_before"].find("failure") is None
    failure = died.cases["test_kills_itself"].find("failure")
    assert "signal 9" in failure.get("message")
    assert "test_after" in died.cases


def test_no_other_test_runs_where_tests_were_served():
    told = run(SERVED, "--workers=1")
    assert "5 passed" in told.said
    where = {kind: {process for process, other in told.where if other == kind} for kind in ("served", "other")}
    assert len(where["served"]) == 1
    assert not where["served"] & where["other"]


def test_a_test_that_never_ends_fails_and_the_next_runs():
    told = run(f"import workers\nworkers._STUCK_S = 0.5\n{STUCK}")
    assert told.failed == ["test_waits"]
    assert "1 failed, 1 passed" in told.said


def test_a_fixture_of_the_session_that_does_not_end_is_a_failure(died):
    assert "the server did not end" in died.said
    assert sorted(set(died.failed)) == ["test_after", "test_kills_itself"]
    assert died.code == 1


def test_threads_that_the_import_of_a_file_starts_are_named():
    thread = "threading.Thread(target=threading.Event().wait, args=(5,), name='mine')"
    told = run(f"import threading\n{thread}.start()\n\ndef test_one():\n    pass\n")
    assert told.code == 0
    assert "which no worker has: ['mine']" in told.said


def test_the_run_ends_after_as_many_failures_as_it_may_have():
    wrong = "".join(f"def test_{n}():\n    time.sleep(0.5)\n    assert not {n + 1}\n" for n in range(9))
    told = run(f"import time\n{wrong}", "-x")
    assert "1 failed" in told.said
    assert len(told.cases) < 9
    assert told.code == 1
