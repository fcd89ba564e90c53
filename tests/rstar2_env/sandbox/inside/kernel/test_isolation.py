"""Each layer is active, escapes fail, and strict isolation refuses to start without its guarantees."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import dedent
from typing import Any

import pytest

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Outcome, Sandbox, check
from rstar2_env.sandbox.check import try_to_escape

pytestmark = pytest.mark.deadlines

Run = Callable[..., Outcome]
PROMISES = 9


def test_every_promise_is_kept_and_named(any_sandbox: Sandbox) -> None:
    required = [layer for layer in any_sandbox.capabilities() if layer.required]
    assert len(required) >= PROMISES  # a provider with a wall of its own has one more to keep: calls apart
    assert all(layer.active and layer.detail for layer in required)


def test_no_escape_succeeds(any_sandbox: Sandbox) -> None:
    trials = try_to_escape(any_sandbox)
    assert [trial for trial in trials if not trial.held] == []
    assert {trial.layer for trial in trials} >= {layer.name for layer in any_sandbox.capabilities() if layer.required}


def test_the_attempts_do_succeed_where_nothing_isolates() -> None:
    # Otherwise that none succeeds in a sandbox would say nothing.
    with unisolated() as sandbox:
        broken = {trial.layer for trial in try_to_escape(sandbox) if not trial.held}
    assert broken >= {"no network", "no access to other processes", "no access to the user's files"}


def test_a_daemon_that_is_killed_before_it_reports_counts_as_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a process namespace and control groups, it is killed as soon as a check finds it to be an orphan.
    code, held = check._ATTEMPTS["no leftover processes"]
    slow = code.replace("os.write(", "time.sleep(60)\n        os.write(")
    assert slow != code
    monkeypatch.setattr(check, "_ATTEMPTS", {"no leftover processes": (slow, held)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        sandbox = LocalSandbox(workers=1, waiting=1, isolation="best", preload=(), without=["pid", "cgroups"])
    with sandbox:
        assert [trial for trial in try_to_escape(sandbox) if not trial.held] == []


def test_a_call_sees_two_processes_and_is_not_the_first(run: Run) -> None:
    assert run("import os\n(os.getpid() > 1, os.getppid())").value == "(True, 0)"


def test_no_privilege_is_left(run: Run) -> None:
    lines = dict(
        line.split(":", 1) for line in run("print(open('/proc/self/status').read())").stdout.splitlines() if line
    )
    assert {int(lines[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (lines["NoNewPrivs"].strip(), lines["Seccomp"].strip()) == ("1", "2")
    assert "0" not in lines["Uid"].split()


def test_the_root_shows_python_and_nothing_of_a_user(run: Run) -> None:
    shown = set(eval(str(run("import os\nos.listdir('/')").value)))
    assert {"tmp", "proc", "dev", "usr", "etc"} <= shown
    assert shown.isdisjoint({"home", "root", "work", "var", "mnt", "media", "srv", "opt", "sys", "run", "boot"})


def test_every_place_but_the_working_folder_is_read_only(run: Run) -> None:
    code = """
    import os
    wrote = []
    for folder, _, _ in os.walk("/"):
        if folder.startswith(("/proc", "/tmp")): continue
        try:
            os.close(os.open(folder + "/x", os.O_CREAT | os.O_WRONLY))
            wrote.append(folder)
        except OSError: pass
    wrote
    """
    assert run(dedent(code), limits=Limits(wall_s=60)).value == "[]"


def test_no_two_calls_in_flight_share_a_namespace(local: LocalSandbox) -> None:
    look = "import os, time\ntime.sleep(0.5)\n"
    look += "[os.readlink(f'/proc/self/ns/{name}') for name in ('pid', 'mnt', 'net', 'ipc', 'uts')]"
    local.run(Job("import os", session="beside"))
    jobs = [Job(look), Job(look), Job(look, session="beside")]
    seen = [set(eval(str(outcome.value))) for outcome in local.run_many(jobs)]
    local.end_session("beside")
    assert len(set.union(*seen)) == 15, seen


def test_proc_shows_the_call_alone(run: Run) -> None:
    shown = eval(str(run("import os\nos.listdir('/proc')").value))
    assert [name for name in shown if not name.isdigit() and name not in ("self", "thread-self")] == []


def test_the_environment_is_ours(run: Run) -> None:
    names = set(eval(str(run("import os\nlist(os.environ)").value)))
    assert "SECRET_TOKEN" not in names
    assert {"PATH", "HOME", "PYTHONHASHSEED"} <= names
    assert run("import os\n(os.environ['HOME'], os.getcwd())").value == "('/tmp', '/tmp')"


def test_modules_that_were_not_preloaded_import(run: Run) -> None:
    assert (
        run("import sqlite3, ssl, unicodedata, lzma, ctypes, multiprocessing, decimal, mpmath\n'fine'").value
        == "'fine'"
    )


def test_only_three_descriptors_and_the_report_are_open(run: Run) -> None:
    code = """
    import os
    found = []
    for fd in range(4096):
        try: os.fstat(fd)
        except OSError: continue
        found.append(fd)
    found
    """
    assert run(dedent(code)).value == "[0, 1, 2, 4]"


def test_a_folder_that_is_named_can_be_read_and_not_written() -> None:
    with LocalSandbox(workers=1, preload=(), readable=["/var/lib"]) as sandbox:
        shown = sandbox.run(Job("import os\nsorted(os.listdir('/var/lib'))")).value
        assert shown == str(sorted(os.listdir("/var/lib")))
        assert sandbox.run(Job("open('/var/lib/x', 'w')")).error_type in ("OSError", "PermissionError")
        assert sandbox.run(Job("import os\nos.listdir('/var')")).value == "['lib']"


def test_a_root_folder_is_the_folder_of_this_name_in_the_working_folder() -> None:
    with LocalSandbox(workers=1, preload=(), root_folders=["app"]) as sandbox:
        code = "import os\nos.mkdir('app')\nopen('/app/x', 'w').close()\nos.listdir('app'), os.path.exists('/tests')"
        assert sandbox.run(Job(code)).value == "(['x'], False)"
        assert sandbox.run(Job("import os\nos.path.exists('/app/x')")).value == "False"


@pytest.mark.parametrize(
    ("without", "broken"),
    [
        (["pid", "seccomp"], "no leftover processes"),
        (["pid", "landlock"], "no access to other processes"),
        (["mount", "landlock"], "no access to the user's files"),
        (["net", "seccomp"], "no network"),
    ],
)
def test_strict_refuses_and_names_what_is_missing(without: list[str], broken: str) -> None:
    with pytest.raises(SandboxUnavailableError, match=broken):
        LocalSandbox(workers=1, preload=(), without=without)


@pytest.mark.parametrize("without", [["seccomp"], ["landlock"], ["net"], ["ipc", "uts", "cgroup"], ["cgroups"]])
def test_strict_holds_while_another_mechanism_keeps_the_promise(without: list[str]) -> None:
    with LocalSandbox(workers=1, waiting=1, preload=(), without=without) as sandbox:
        assert [trial for trial in try_to_escape(sandbox) if not trial.held] == []


@pytest.mark.parametrize(
    "without",
    [["pid", "seccomp"], ["mount", "landlock"], ["mount", "pid", "net", "landlock", "seccomp", "cgroups", "users"]],
)
def test_best_runs_with_what_there_is(without: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        sandbox = LocalSandbox(workers=1, waiting=1, isolation="best", preload=(), without=without)
    with sandbox:
        daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\nprint('left', flush=True)"
        outcomes = sandbox.run_many([Job("print(open('x', 'w').write('x'))"), Job("1 / 0"), Job(daemon), Job("2")])
        assert [outcome.status.value for outcome in outcomes] == ["ok", "exception", "ok", "ok"]
        assert sandbox.run(Job("while True: pass", limits=Limits(wall_s=0.3))).status is ToolStatus.TIMEOUT


def test_best_warns_once_of_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rstar2_env.sandbox.base._warned", set())
    options: dict[str, Any] = {"isolation": "best", "workers": 1, "preload": (), "without": ["pid", "seccomp"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            LocalSandbox(**options).close()
    assert [warning.category for warning in caught] == [RuntimeWarning]
    assert "no leftover processes" in str(caught[0].message)
    assert caught[0].filename == __file__, "the warning names another line than the one that asked for the sandbox"


def test_none_warns_and_switches_everything_off() -> None:
    with pytest.warns(RuntimeWarning, match="all the rights"):
        sandbox = LocalSandbox(isolation="none", workers=1)
    with sandbox:
        assert sandbox.run(Job("import os\nos.getuid()")).value == str(os.getuid())
        assert [layer.name for layer in sandbox.capabilities() if layer.active and not layer.required] == []


def test_without_a_pid_namespace_a_daemon_is_killed_all_the_same(look: Any) -> None:
    with unisolated() as sandbox:
        code = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: time.sleep(60)
            os._exit(0)
        os.wait()
        """
        sandbox.run(Job(dedent(code)))
        look.wait_for(lambda: len(look.descendants(look.pids(sandbox)[1])) == 1)


@contextmanager
def unisolated() -> Iterator[LocalSandbox]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        sandbox = LocalSandbox(isolation="none", workers=1, waiting=1, preload=())
    with sandbox:
        yield sandbox
