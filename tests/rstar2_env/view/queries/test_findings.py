"""The findings of a run in the viewer: those of the diagnosis, once for each state of the run, without a wait."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from faulty_runs import SINCE, write_faulty
from viewed import write_page
from waiting import wait_for

from rstar2_env.diagnosis import diagnose
from rstar2_env.view.answers import Answers, read_runs
from rstar2_env.view.queries import findings as module
from rstar2_env.view.queries import findings_process, health
from rstar2_env.view.queries.findings import ChildProcess, RunFindings, findings_of
from rstar2_env.view.queries.findings_process import lower_priority
from rstar2_env.view.server import ViewServer


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    return write_faulty(tmp_path_factory.mktemp("runs") / "faulty")


class Looks:
    """Looks at runs, each look when it is allowed; counts them."""

    def __init__(self, allowed=True):
        self.many, self.allowed = 0, threading.Event()
        if allowed:
            self.allowed.set()

    def __call__(self, path, name):
        self.many += 1
        self.allowed.wait(30)
        return findings_of(path, name)


def test_they_are_those_of_the_diagnosis(faulty):
    found, expected = findings_of(faulty, "named"), diagnose(faulty).record()
    assert "gradient_zero" in [one["check"] for one in found["findings"]]
    assert {name: found[name] for name in ("step", "findings", "silent", "not_recorded")} == {
        name: expected[name] for name in ("step", "findings", "silent", "not_recorded")
    }
    assert "examined named (training, up to step 8)" in found["summary"]


def test_a_run_that_cannot_be_read_has_a_sentence_without_its_path(faulty, tmp_path):
    broken = write_faulty(tmp_path / "broken")
    with (broken / "events.jsonl").open("a") as file:
        file.write("not json\n{}\n")
    found = findings_of(broken, "named")
    assert found["findings"] == []
    assert "Line 5 of named/events.jsonl" in found["failed"]
    assert str(tmp_path) not in found["failed"]


def test_a_state_of_a_run_is_looked_at_once(faulty):
    looks = Looks()
    findings = RunFindings(looks)
    answers = [findings.find(faulty, "run", state, running=False, wait_s=None) for state in (1, 1, 2)]
    assert looks.many == 2
    assert [answer["again_s"] for answer in answers] == [None] * 3


def test_a_run_in_progress_keeps_its_findings_for_a_while_and_its_end_is_looked_at(faulty):
    looks = Looks()
    findings = RunFindings(looks, share=1e6)
    findings.find(faulty, "run", 1, running=False, wait_s=None)
    kept = findings.find(faulty, "run", 2, running=True)
    assert looks.many == 1
    assert kept["again_s"] > 0
    assert kept["findings"]
    assert findings.find(faulty, "run", 2, running=False, wait_s=None)["again_s"] is None
    assert looks.many == 2


def test_a_request_does_not_wait_for_a_long_look_and_begins_no_second_one(faulty):
    looks = Looks(allowed=False)
    findings = RunFindings(looks)
    for _ in range(3):
        assert findings.find(faulty, "run", 1, running=False, wait_s=0.01).keys() == {"again_s"}
    looks.allowed.set()
    found = findings.find(faulty, "run", 1, running=False, wait_s=None)
    assert [one["since"] for one in found["findings"] if one["check"] == "gradient_zero"] == [SINCE]
    assert looks.many == 1


def test_one_run_is_looked_at_at_a_time_and_stored_findings_of_others_do_not_wait(faulty, tmp_path):
    looks, known = Looks(allowed=False), {"failed": "", "findings": []}
    findings = RunFindings(looks)
    findings.find(faulty, "run", 1, running=False, wait_s=0)
    wait_for(lambda: looks.many == 1)
    stored = findings.find(tmp_path, "stored", 1, running=False, wait_s=20, stored=lambda compute: known)
    findings.find(tmp_path / "other", "other", 1, running=False, wait_s=0.2)
    assert looks.many == 1
    looks.allowed.set()
    assert stored == {**known, "again_s": None}
    findings.find(tmp_path / "other", "other", 1, running=False, wait_s=None)
    assert looks.many == 2


def test_a_large_run_is_diagnosed_in_a_process_of_its_own(faulty, monkeypatch):
    expected = findings_of(faulty, "named")
    monkeypatch.setattr(module, "_LARGE_BYTES", 1)
    monkeypatch.setattr(module, "findings_of", lambda path, name: pytest.fail("diagnosed in the viewer's process"))
    monkeypatch.setattr(module, "_NICENESS", 0)
    findings = RunFindings()
    while (found := findings.find(faulty, "named", 1, running=False))["again_s"] is not None:
        assert found.keys() == {"again_s"}
    assert found == {**expected, "again_s": None}


@pytest.mark.parametrize(("large", "wait_s"), [(10**9, 60), (1, None)])
def test_a_small_run_and_a_caller_that_waits_need_no_process(faulty, monkeypatch, large, wait_s):
    monkeypatch.setattr(module, "_LARGE_BYTES", large)
    monkeypatch.setattr(ChildProcess, "findings_of", lambda *given: pytest.fail("started a process"))
    assert RunFindings().find(faulty, "named", 1, running=False, wait_s=wait_s)["findings"]


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="the kernel has no sessions with a priority")
def test_the_process_and_its_session_have_a_low_priority():
    found = subprocess.run(
        ["sh", "-c", "nice; cat /proc/self/autogroup"],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
        preexec_fn=lambda: lower_priority(15),
    ).stdout.split()
    assert int(found[0]) >= 15
    assert found[-1] == "15"


def test_the_process_has_a_low_priority_before_it_imports_the_package(tmp_path):
    package = tmp_path / "rstar2_env"
    package.mkdir()
    (package / "__init__.py").write_text("import os\nraise SystemExit(f'niceness {os.nice(0)}')\n")
    command = [sys.executable, "-P", "-S", findings_process.__file__, "run", "named", str(os.getpid()), "15"]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path)},
        start_new_session=True,  # otherwise the session of the tests would get the low priority
    )
    assert int(ran.stderr.removeprefix("niceness ")) >= 15


def test_the_process_is_killed_on_close_and_its_run_is_not_reported_as_diagnosed(faulty):
    child = ChildProcess()
    errors = []

    def diagnose_until_killed():
        try:
            child.findings_of(faulty, "named")
        except ChildProcessError as error:
            errors.append(str(error))

    thread = threading.Thread(target=diagnose_until_killed)
    thread.start()
    while child._process is None:
        assert thread.is_alive()
    os.kill(child._process.pid, signal.SIGSTOP)  # so that it does not end by itself
    child.close()
    thread.join(30)
    assert child._process.returncode == -9
    assert errors == ["The process that diagnoses named ended with an error: exit code -9"]
    with pytest.raises(ChildProcessError, match="closed"):
        child.findings_of(faulty, "named")


def test_the_process_does_not_start_while_the_viewer_answers_requests(faulty, monkeypatch):
    monkeypatch.setattr(module, "_REST_S", 60.0)
    monkeypatch.setattr(module, "_LONGEST_REST_S", 60.0)
    child = ChildProcess()
    child.postpone()
    reasons = []

    def diagnose():
        try:
            child.findings_of(faulty, "named")
        except ChildProcessError as error:
            reasons.append(str(error))

    thread = threading.Thread(target=diagnose)
    thread.start()
    thread.join(1)
    assert thread.is_alive()
    assert child._process is None
    child.close()
    thread.join(30)
    assert child._process is None
    assert reasons == ["named was not diagnosed: the viewer was closed."]


def test_the_wait_before_the_process_does_not_count_as_time_of_its_computation(faulty, monkeypatch):
    now = [0.0]

    class Process:
        returncode = 0

        def __init__(self, *given, **options):
            pass

        def communicate(self):
            now[0] += 2.0
            return b'{"failed": "", "findings": []}', b""

    monkeypatch.setattr(module, "_LARGE_BYTES", 1)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(module.subprocess, "Popen", Process)
    monkeypatch.setattr(ChildProcess, "_rest", lambda self: now.__setitem__(0, now[0] + 10.0))
    findings = RunFindings(share=20.0)
    assert findings.find(faulty, "run", 1, running=True, wait_s=60)["again_s"] is None
    assert findings.find(faulty, "run", 2, running=True)["again_s"] == 40.0


def test_the_process_starts_at_last_however_many_requests_arrive(faulty, monkeypatch):
    monkeypatch.setattr(module, "_REST_S", 60.0)
    monkeypatch.setattr(module, "_LONGEST_REST_S", 0.01)
    child = ChildProcess()
    child.postpone()
    assert child.findings_of(faulty, "named")["findings"]


def test_every_request_but_one_for_findings_delays_the_process_when_it_begins_and_ends(faulty, tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(Answers, "metrics", lambda *given: begun.append(child._requested))
    with ViewServer([faulty], cache=tmp_path / "cache", static=write_page(tmp_path / "page")) as server:
        run = server.answers.runs()["runs"][0]["run"]
        child = server.answers._found._child
        assert httpx.get(f"{server.address}api/runs/{run}/findings").is_success
        assert child._requested == -math.inf
        assert httpx.get(f"{server.address}api/runs/{run}/metrics").is_success
        assert -math.inf < begun[0] < child._requested


@pytest.mark.parametrize("failure", [ChildProcessError("no luck"), ValueError("no luck"), "no luck"])
def test_a_failure_is_reported_and_not_stored(faulty, tmp_path, monkeypatch, failure):
    run = shutil.copytree(faulty, tmp_path / "runs" / "faulty")

    def look(path, name):
        if isinstance(failure, str):
            return {**findings_of(path, name), "failed": failure}
        raise failure

    def ask():
        with read_runs([run], tmp_path / "cache") as answers:
            return answers.findings(answers.runs()["runs"][0]["run"], wait=True)

    with monkeypatch.context() as patch:
        patch.setattr(module, "findings_of", look)
        assert ask()["failed"] == "no luck"
    assert ask()["failed"] == ""


def test_nothing_is_computed_after_close(faulty):
    looks = Looks()
    findings = RunFindings(looks)
    findings.close()
    assert "closed" in findings.find(faulty, "named", 1, running=False, wait_s=None)["failed"]
    assert looks.many == 0


def test_a_closed_viewer_ends_the_process(faulty, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LARGE_BYTES", 1)
    server = ViewServer([faulty], cache=tmp_path / "cache", static=write_page(tmp_path / "page"))
    with server:
        server.answers.findings(server.answers.runs()["runs"][0]["run"])
        child = server.answers._found._child
        while child._process is None:
            pass
        os.kill(child._process.pid, signal.SIGSTOP)  # so that it does not end by itself
    assert child._process.wait(30) == -9


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_the_process_ends_with_the_viewers_process(faulty):
    program = (
        "import os, sys, threading, time\n"
        "from pathlib import Path\n"
        "from rstar2_env.view.queries.findings import ChildProcess\n"
        "child = ChildProcess()\n"
        "threading.Thread(target=child.findings_of, args=(Path(sys.argv[1]), 'named'), daemon=True).start()\n"
        "while child._process is None:\n    pass\n"
        "print(child._process.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, faulty], capture_output=True, text=True, check=True)
    until = time.monotonic() + 60
    while Path(f"/proc/{int(done.stdout)}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_next_viewer_reads_stored_findings_until_the_run_or_a_check_changes(faulty, tmp_path, monkeypatch):
    run = shutil.copytree(faulty, tmp_path / "runs" / "faulty")
    looked = []

    def look(path, name):
        looked.append(name)
        return findings_of(path, name)

    monkeypatch.setattr(module, "findings_of", look)

    def ask():
        with read_runs([run], tmp_path / "cache") as answers:
            (row,) = answers.runs()["runs"]
            return answers.findings(row["run"], wait=True)

    first = ask()
    assert first["findings"]
    assert ask() == first
    assert len(looked) == 1
    for many, changed in enumerate((run / "metrics.jsonl", next((run / "episodes").iterdir())), 2):
        os.utime(changed, ns=(1, 1))
        ask()
        assert len(looked) == many
    monkeypatch.setattr("rstar2_env.view.answers.code_state", lambda: "another check")
    ask()
    assert len(looked) == 4


def test_stored_health_is_computed_again_when_the_code_of_the_health_strip_changes(faulty, tmp_path, monkeypatch):
    code, computed = Path(shutil.copy(health.__file__, tmp_path)), []
    monkeypatch.setattr(health, "__file__", str(code))
    monkeypatch.setattr(health, "health_of", lambda *given: computed.append(given) or [])

    def ask():
        module.code_state.cache_clear()  # as in another process
        with read_runs([faulty], tmp_path / "cache") as answers:
            answers.run(answers.runs()["runs"][0]["run"])

    ask()
    ask()
    assert len(computed) == 1
    os.utime(code, ns=(1, 1))
    ask()
    assert len(computed) == 2
