"""The findings of ``rstar2 diagnose`` for the viewer, computed in the background, once for each state of a run.

The findings of a small run are computed in a thread, and the findings of a large run in a separate process
(``findings_process``): Python runs one thread at a time, so a thread that computes for seconds would delay every
response of the server.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import math
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import rstar2_env.core
import rstar2_env.diagnosis
from rstar2_env.core.errors import Rstar2Error
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.folder import read_folder

_Look = Callable[[Path, str], dict[str, Any]]

_PROGRAM = Path(__file__).with_name("findings_process.py")
_WAIT_S = 0.3
"""Seconds that a request waits for findings that are being computed; for most runs, this is long enough."""
_ASK_S = 2.0
"""Seconds after which the page repeats a request whose findings are still being computed."""
_SHARE = 20.0
"""Minimum time for which findings of a run in progress are kept, as a multiple of the time of their computation.

Each computation reads the whole run; with this factor, computations take at most one twentieth of the time.
"""
_LONGEST_S = 600.0
"""Maximum time for which findings of a run in progress are kept, in seconds."""
_LARGE_BYTES = 1_000_000
"""Minimum size on disk, in bytes, of a run whose findings are computed in a separate process.

A thread takes about 1.5 s for a run of this size; a process takes 0.6 s to start.
"""
_NICENESS = 15
"""Niceness of the process that computes findings: while other programs use all cores, it gets 1/30 of a core."""
_REST_S, _LONGEST_REST_S = 2.0, 10.0
"""Seconds without a request after which ``ChildProcess`` starts its process; maximum seconds to wait for this pause.

On a machine with few cores, even a process of low priority delays a page that is being opened.
"""


def findings_of(path: Path, name: str) -> dict[str, Any]:
    """Compute the findings of a run.

    Args:
        path: The run's folder, or the file of an evaluation.
        name: Name of the run, which replaces the path in sentences.

    Returns:
        ``summary``, ``step`` (the last examined step), ``findings``, ``silent`` (checks that found nothing) and
        ``not_recorded`` (checks that could not decide, with the data that they lack), as in ``rstar2 diagnose --json``;
        ``failed``: the reason why the run cannot be diagnosed, or empty.
    """
    try:
        record = read_folder(path)
        record.name = name
        found = examine(record)
    except (Rstar2Error, OSError, EOFError) as error:
        return _no_findings(str(error).replace(str(path), name))
    values = found.record()
    kept = ("step", "findings", "silent", "not_recorded")
    return {"summary": found.summary, "failed": "", **{key: values[key] for key in kept}}


@cache
def code_state(*others: str) -> str:
    """Return a digest that changes with the registered checks of ``rstar2 diagnose``, or with their code.

    Args:
        others: Paths of further files on whose content the digest depends.
    """
    packages = (rstar2_env.diagnosis, rstar2_env.core)
    files = {file for package in packages for file in Path(str(package.__file__)).parent.rglob("*.py")}
    files.update(map(Path, others))
    for check in every_check():
        with contextlib.suppress(OSError, TypeError):  # a check of a notebook has no file
            files.add(Path(inspect.getfile(check.look)))
    states = []
    for file in sorted(files):
        with contextlib.suppress(OSError):
            states.append((str(file), (found := file.stat()).st_size, found.st_mtime_ns))
    return hashlib.sha256(repr((CHECKS.names(), states)).encode()).hexdigest()


class ChildProcess:
    """Computes findings in a separate process with low priority; thread-safe, one run at a time.

    Checks that a notebook has registered do not exist in that process. The process starts when the viewer has answered
    no request for two seconds. It ends when this object is closed, and on Linux also when the process that started it
    ends.

    Attributes:
        began: Time at which the last process was started, on the clock ``time.monotonic``.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()
        self._requested = self.began = -math.inf

    def postpone(self) -> None:
        """Record that a request begins or ends now, so that the process does not start in the next two seconds."""
        self._requested = time.monotonic()

    def _rest(self) -> None:
        until = time.monotonic() + _LONGEST_REST_S
        while (left := min(self._requested + _REST_S, until) - time.monotonic()) > 0:
            if self._closed.wait(left):
                return

    def check_open(self, name: str) -> None:
        """Raise ``ChildProcessError``, with the name of a run in its message, if this object was closed."""
        if self._closed.is_set():
            raise ChildProcessError(f"{name} was not diagnosed: the viewer was closed.")

    def findings_of(self, path: Path, name: str) -> dict[str, Any]:
        """Return the result of ``findings_of`` for a run.

        Raises:
            ChildProcessError: The process ended without a result.
        """
        self._rest()
        with self._lock:
            self.check_open(name)
            self.began = time.monotonic()
            given = (str(_PROGRAM), str(path), name, str(os.getpid()), str(_NICENESS))
            self._process = process = subprocess.Popen(
                [sys.executable, "-P", *given],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(str, sys.path)))},
                start_new_session=True,  # Ctrl-C is not meant for it, and its priority is that of a session
            )
        out, err = process.communicate()
        if process.returncode:
            said = err.decode("utf-8", "replace").strip().splitlines()
            reason = said[-1] if said else f"exit code {process.returncode}"
            raise ChildProcessError(f"The process that diagnoses {name} ended with an error: {reason}")
        found: dict[str, Any] = json.loads(out)
        return found

    def close(self) -> None:
        """End the process, if it runs, and start no further one."""
        with self._lock:
            self._closed.set()
            if self._process is not None:
                self._process.kill()


class _FailedError(Exception):
    """Passes the result of a failed diagnosis through the cache of findings, which then does not store the result."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer


def _no_findings(failed: str) -> dict[str, Any]:
    return {"summary": "", "step": 0, "findings": [], "silent": [], "not_recorded": {}, "failed": failed}


def _is_large(path: Path) -> bool:
    size = 0
    for file in path.rglob("*") if path.is_dir() else [path]:
        with contextlib.suppress(OSError):  # a file of a run in progress can disappear
            size += file.stat().st_size
        if size >= _LARGE_BYTES:
            return True
    return False


@dataclass(slots=True)
class _Held:
    answer: dict[str, Any] | None = None
    state: Any = None
    until: float = 0.0
    took_s: float = 0.0
    done: threading.Event | None = field(default=None, repr=False)


class RunFindings:
    """Computes and caches findings by run, one run at a time, in the background; thread-safe.

    Args:
        look: Function that computes the findings of a run, given its path and name [default: ``findings_of``, in a
            separate process if the run is large and the caller waits with a time limit].
        share: Time for which findings of a run in progress are kept, as a multiple of the time that their computation
            took.
    """

    def __init__(self, look: _Look | None = None, share: float = _SHARE) -> None:
        self._child = ChildProcess()
        self._look, self._share = look, share
        self._lock, self._one = threading.Lock(), threading.Lock()
        self._held: dict[Path, _Held] = {}

    def find(
        self,
        path: Path,
        name: str,
        state: Any,
        *,
        running: bool,
        wait_s: float | None = _WAIT_S,
        stored: Callable[[Callable[[], dict[str, Any]]], dict[str, Any]] = lambda compute: compute(),
    ) -> dict[str, Any]:
        """Return the known findings of a run; if the run has changed, begin to compute new ones.

        Args:
            path: Path of the run.
            name: Name of the run.
            state: A value that changes whenever the run does.
            running: Whether the run is in progress. If so, earlier findings are returned for a while, even if the run
                has changed.
            wait_s: Seconds to wait for findings of this state; ``None`` for no limit.
            stored: Cache of findings. It is called with a function that computes the findings. It returns the findings
                that are stored for this state, or else computes and stores them.

        Returns:
            The result of ``findings_of``, and ``again_s``: seconds after which to request newer findings, ``None`` if
            these are for the given state. If no findings are known yet, only ``again_s``.
        """
        with self._lock:
            held = self._held.setdefault(path, _Held())
            kept_s = held.until - time.monotonic() if running and wait_s is not None else 0.0
            if held.state != state and held.done is None and kept_s <= 0:
                held.done = threading.Event()
                look = self._look or (self._look_by_size if wait_s is not None else findings_of)
                threading.Thread(target=self._renew, args=(held, look, path, name, state, stored), daemon=True).start()
            done = held.done
        if done is not None:
            done.wait(wait_s)
        with self._lock:
            again_s = None if held.state == state else max(_ASK_S, kept_s)
            return {**(held.answer or {}), "again_s": again_s}

    def postpone(self) -> None:
        """Record that a request begins or ends now, so that no process is started in the next two seconds."""
        self._child.postpone()

    def close(self) -> None:
        """End a process that computes findings, and compute no further ones."""
        self._child.close()

    def _found(self, held: _Held, look: _Look, path: Path, name: str) -> dict[str, Any]:
        with self._one:
            self._child.check_open(name)
            began = time.monotonic()
            try:
                answer = look(path, name)
            finally:  # the wait before a process starts does not count
                held.took_s = time.monotonic() - max(began, self._child.began)
        if answer["failed"]:
            raise _FailedError(answer)
        return answer

    def _look_by_size(self, path: Path, name: str) -> dict[str, Any]:
        return (self._child.findings_of if _is_large(path) else findings_of)(path, name)

    def _renew(
        self,
        held: _Held,
        look: _Look,
        path: Path,
        name: str,
        state: Any,
        stored: Callable[[Callable[[], dict[str, Any]]], dict[str, Any]],
    ) -> None:
        held.took_s = 0.0
        try:
            try:
                answer = stored(lambda: self._found(held, look, path, name))
            except _FailedError as error:
                answer = error.answer
            except (Rstar2Error, OSError, ValueError, sqlite3.Error) as error:
                answer = _no_findings(str(error))
            with self._lock:
                held.answer, held.state = answer, state
                held.until = time.monotonic() + min(self._share * held.took_s, _LONGEST_S)
        finally:
            with self._lock:
                done, held.done = held.done, None
            if done is not None:
                done.set()
