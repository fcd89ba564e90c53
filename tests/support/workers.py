"""A pytest plugin that collects the tests once and runs them in processes that it forks then: ``--workers N``.

Each worker has every test and every import of the process that collected, at no cost of its own. It takes one group of
tests after another (``groups.py`` says which tests are a group, and in which order groups begin), and only when it has
none left: no group waits behind another while a worker is idle. The reports go to the process that collected, which
counts, prints and writes them. A worker that dies, or says nothing for longer than a test may take, fails the test that
it ran; another worker runs the rest of its group.

A worker ends after tests that are served (by Ray, vLLM, Docker, a browser): what those leave in a process, threads
above all, meets no other test.

Fixtures of a session live as long as a worker: each has its own.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import create_terminal_writer
from groups import SERVED, group_of

_NOWHERE = Path(os.devnull).open("w")  # noqa: SIM115  # open as long as a process
_LOOK_S = 1.0
"""Seconds after which the processes are looked at, whatever they say: one that dies may leave its pipe to a child."""
_STUCK_S = 180.0
"""A worker that is silent for so much longer than its test's timeout, or at its own end, is killed."""
_END_S, _PAUSE_S = 30.0, 0.1
"""Seconds that a worker has to end when the run ends early, and seconds between two looks."""
_WRITERS = ("failed_ids", "LogXML")
"""Plugins of the process that collected, by name or class: in a worker they would write every test once more."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--workers", type=int, default=0, metavar="N", help="run the tests in N processes; 0: in this one")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, if there are to be any."""
    number = session.config.getoption("workers")
    by_xdist = hasattr(session.config, "workerinput") or session.config.getoption("numprocesses", None)
    if not number or by_xdist or session.config.option.collectonly:
        return None
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    groups: dict[str, list[int]] = {}
    for place, item in enumerate(session.items):
        groups.setdefault(group_of(item), []).append(place)
    _Loop(session, deque(groups.values())).run(number)
    return True


@dataclass
class _Worker:
    """A process and what it does.

    Attributes:
        pid: The process.
        pipe: This process's end of the pipe to it.
        tests: Places of the tests that it was given and has not ended, the one that runs first.
        heard: When it last said something.
    """

    pid: int
    pipe: Connection
    tests: deque[int] = field(default_factory=deque)
    heard: float = field(default_factory=time.monotonic)


class _Loop:
    """Hands groups of tests to workers, and takes in what they report."""

    def __init__(self, session: pytest.Session, groups: deque[list[int]]) -> None:
        self.session, self.groups = session, groups
        self.workers: list[_Worker] = []
        self.begun = 0

    def run(self, number: int) -> None:
        """Run every group.

        Raises:
            pytest.Session.Failed: As many tests failed as pytest was told to bear.
            pytest.Session.Interrupted: A plugin asked for an end.
        """
        threads = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
        if threads:
            print(f"\nThe import of tests started threads, which no worker has: {threads}.", flush=True)
        self.session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        gc.collect()
        gc.freeze()
        try:
            for _ in range(min(number, len(self.groups))):
                self._start()
            while self.workers:
                self._listen()
                if self.session.shouldfail:
                    raise self.session.Failed(self.session.shouldfail)
                if self.session.shouldstop:
                    raise self.session.Interrupted(self.session.shouldstop)
        finally:
            for worker in self.workers:
                worker.pipe.close()
                _end(worker.pid)
            gc.unfreeze()

    def _start(self) -> None:
        """Fork a worker; it asks for its first group itself."""
        capture = self.session.config.pluginmanager.getplugin("capturemanager")
        if capture:
            capture.suspend_global_capture(in_=True)
        sys.stdout.flush()
        sys.stderr.flush()
        own, its = multiprocessing.Pipe()
        name = f"w{self.begun}"
        self.begun += 1
        pid = os.fork()
        if not pid:
            own.close()
            for worker in self.workers:
                worker.pipe.close()
            _end_with(lambda: _work(self.session, its, name))
        its.close()
        if capture:
            capture.resume_global_capture()
        self.workers.append(_Worker(pid, own))

    def _listen(self) -> None:
        """Take in what has come, and see which workers have ended; kill one that is stuck."""
        ready = wait([worker.pipe for worker in self.workers], timeout=_LOOK_S)
        for worker in list(self.workers):
            # What a worker said before it ended is read before its end is looked at.
            ended = os.waitpid(worker.pid, os.WNOHANG) if worker.pipe not in ready else (0, 0)
            with suppress(EOFError, ConnectionError):
                while worker.pipe.poll():
                    self._take(worker, *worker.pipe.recv())
                if not ended[0] and not self._is_stuck(worker):
                    continue
                if not ended[0]:
                    print(
                        f"\nA worker was silent for {time.monotonic() - worker.heard:.0f} s and is killed.", flush=True
                    )
                    os.kill(worker.pid, signal.SIGKILL)
            status = ended[1] if ended[0] else os.waitpid(worker.pid, 0)[1]
            self._ended(worker, os.waitstatus_to_exitcode(status))

    def _is_stuck(self, worker: _Worker) -> bool:
        """Whether a worker has been silent for much longer than its test may take."""
        limit = 0.0
        if worker.tests:
            marker = self.session.items[worker.tests[0]].get_closest_marker("timeout")
            limit = float(marker.args[0] if marker else self.session.config.getini("timeout") or "inf")
        return time.monotonic() - worker.heard > limit + _STUCK_S

    def _take(self, worker: _Worker, kind: str, said: Any) -> None:
        """Take in one message of a worker."""
        hook, config = self.session.config.hook, self.session.config
        worker.heard = time.monotonic()
        if kind == "free":
            if self.groups:
                worker.tests = deque(self.groups.popleft())
                worker.pipe.send(list(worker.tests))
            else:
                worker.pipe.send([])
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=config, data=said)
            hook.pytest_runtest_logreport(report=report)
        elif kind == "done":
            worker.tests.remove(said)
            item = self.session.items[said]
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        else:
            message, nodeid, when, location = said
            hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": message, "nodeid": nodeid, "when": when, "location": location}
            )

    def _ended(self, worker: _Worker, code: int) -> None:
        """Forget a worker that ended; the test that it ran has failed, and another worker takes the rest."""
        self.workers.remove(worker)
        worker.pipe.close()
        if worker.tests:
            running, rest = worker.tests[0], list(worker.tests)[1:]
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            report = _failure(self.session.items[running], f"The process ended with {how} while it ran this test.")
            self.session.config.hook.pytest_runtest_logreport(report=report)
            if rest:
                self.groups.appendleft(rest)
        if self.groups and not self.session.shouldfail:
            self._start()


def _end(pid: int) -> None:
    """Interrupt a worker, so that it ends what its tests started, and kill it if it does not end then."""
    os.kill(pid, signal.SIGINT)
    for _ in range(round(_END_S / _PAUSE_S)):
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        time.sleep(_PAUSE_S)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _failure(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid, location=item.location, keywords={}, outcome="failed", longrepr=text, when="call"
    )


def _end_with(work: Callable[[], None]) -> None:
    """Do the work of a forked process and end it: what was registered before the fork is another's to clean up."""
    code = 1
    try:
        atexit._clear()
        for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
            finalizer.detach()
        weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
        work()
        code = 0
    except (BrokenPipeError, EOFError, KeyboardInterrupt):
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
        with suppress(BaseException):
            atexit._run_exitfuncs()
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


class _Teller:
    """The plugin of a worker: sends on what pytest tells about a test."""

    def __init__(self, pipe: Connection, config: pytest.Config) -> None:
        self.pipe, self.config, self.tells_warnings = pipe, config, False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.pipe.send(("report", data))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        nodeid: str,
        when: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        if not self.tells_warnings:
            return
        kind = warning_message.category
        with suppress(Exception):
            pickle.dumps(kind)
            self.pipe.send(("warning", (_said(warning_message, kind), nodeid, when, location)))
            return
        self.pipe.send(("warning", (_said(warning_message, UserWarning), nodeid, when, location)))


def _said(message: warnings.WarningMessage, kind: type[Warning]) -> warnings.WarningMessage:
    """A warning by its text: what it carries besides may not be sent."""
    text: Any = str(message.message)
    return warnings.WarningMessage(text, kind, message.filename, message.lineno, line=message.line)


def _work(session: pytest.Session, pipe: Connection, name: str) -> None:
    """Run groups of tests until there are none left."""
    config = session.config
    _settle(config, name)
    teller = _Teller(pipe, config)
    config.pluginmanager.register(teller, "workers-teller")
    # pytest has told it the warnings of the collection, which the parent knows.
    teller.tells_warnings = True
    item = None
    try:
        while places := _next(pipe):
            for place, following in zip(places, [*places[1:], None], strict=True):
                item = session.items[place]
                # After the last of a group only the fixtures of the session stay: it is not known yet what follows.
                after: Any = session if following is None else session.items[following]
                config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                pipe.send(("done", place))
            if group_of(session.items[places[0]]) in SERVED.values():
                break
    finally:
        try:
            session._setupstate.teardown_exact(None)
        except Exception:
            if item is None:
                raise
            text = f"The end of a fixture of the session failed.\n{traceback.format_exc()}"
            config.hook.pytest_runtest_logreport(report=_failure(item, text))


def _next(pipe: Connection) -> list[int]:
    """Ask for a group of tests; empty when there are none left."""
    pipe.send(("free", None))
    return list(pipe.recv())


def _settle(config: pytest.Config, name: str) -> None:
    """Give a worker captured output and a temporary folder of its own, and silence what its parent does."""
    manager = config.pluginmanager
    for plugin in manager.get_plugins():
        if {manager.get_name(plugin), type(plugin).__name__} & set(_WRITERS):
            manager.unregister(plugin)
    reporter = manager.getplugin("terminalreporter")
    if reporter:
        reporter._tw = create_terminal_writer(config, _NOWHERE)
    capture = manager.getplugin("capturemanager")
    if capture:
        capture.stop_global_capturing()
        capture.start_global_capturing()
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.getbasetemp() / name
    folders._basetemp.mkdir(mode=0o700)
