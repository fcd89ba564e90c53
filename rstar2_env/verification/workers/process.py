"""``WorkerProcess``: starts one worker process, sends it requests, and ends it when it does not reply in time.

The worker is a fresh program (never a fork of the caller, which may hold locks, threads or a GPU), with its own
environment variables and no open files but its two pipes. The calling process enforces the deadline, with SIGKILL.

The thread that starts a worker and sends it requests must live as long as the worker: Linux sends the parent-death
signal when the starting *thread* ends (see ``pool``). Not thread-safe; the pool gives each worker one thread.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rstar2_env.verification.workers.wire import HEADER, WireError, body_length, decode, encode

START_S = 60.0
"""Seconds that a new worker may take to start; also the seconds that it may take to load a large library."""

STARVED_FACTOR = 4.0
"""Longest wall-clock time of a request as a multiple of its deadline: on a busy machine, the deadline counts CPU time.
"""

_PROGRAM = Path(__file__).with_name("worker.py")
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class WorkerTimeoutError(Exception):
    """The worker did not reply before the deadline, and was killed."""


class WorkerDiedError(Exception):
    """The worker process ended before it replied.

    Attributes:
        returncode: Return code of the process, as in ``subprocess``: negative for a signal.
    """

    def __init__(self, returncode: int | None) -> None:
        super().__init__(f"A worker process of the verifier ended with exit code {returncode}.")
        self.returncode = returncode

    @property
    def by_outside_kill(self) -> bool:
        """Whether the worker was killed from outside, by the kernel's OOM killer or an operator, with SIGKILL."""
        return self.returncode == -signal.SIGKILL


class WorkerProcess:
    """A running worker process.

    Args:
        memory_mb: Limit of the worker's address space, in MiB.

    Raises:
        WorkerDiedError: The worker ended before it was ready.
        WorkerTimeoutError: The worker was not ready within ``START_S`` seconds.
        OSError: The worker could not be started.
    """

    def __init__(self, *, memory_mb: int) -> None:
        self.jobs = 0
        self.rss_mb = 0.0
        self._process = subprocess.Popen(
            # -P: neither the working directory nor this package's folder may shadow a module of the standard library.
            [sys.executable, "-s", "-P", "-u", str(_PROGRAM), str(os.getpid()), str(memory_mb)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_environment(),
            bufsize=0,
        )
        assert self._process.stdin is not None  # both pipes were requested above
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        if self._receive(START_S).get("stage") != "ready":
            self.kill()
            raise WorkerDiedError(self._process.returncode)

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send one request and wait for its reply.

        Args:
            request: A JSON object.
            timeout_s: Seconds that the worker may compute, counted from now.

        Raises:
            WorkerTimeoutError: The worker did not reply in time, and was killed.
            WorkerDiedError: The worker process ended before it replied.
            WireError: The request is too large (the worker keeps running), or the reply is malformed (the worker was
                killed).
        """
        frame = encode(request)
        self.jobs += 1
        try:
            self._send(frame, timeout_s)
            reply = self._receive(timeout_s)
            while (stage := reply.get("stage")) is not None:
                # Loading SymPy takes longer than most deadlines and does not depend on the text.
                reply = self._receive(START_S if stage == "loading" else timeout_s)
        except WireError:
            self.kill()
            raise
        rss = reply.get("rss_mb")
        self.rss_mb = float(rss) if isinstance(rss, int | float) else self.rss_mb
        return reply

    def interrupt(self) -> None:
        """Kill the worker from another thread; the thread that owns the worker then reaps the process."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def kill(self) -> None:
        """Kill the worker and reap the process; a second call has no effect."""
        if self._process.poll() is None:
            self.interrupt()
        self._close_pipes()
        self._process.wait()

    def disown(self) -> None:
        """In a forked child, close the pipes to the parent's worker, without killing the worker."""
        self._close_pipes()
        self._process.returncode = 0  # Popen would otherwise warn, and try to collect a child that is not ours

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, frame: bytes, timeout_s: float) -> None:
        view = memoryview(frame)
        deadline = time.monotonic() + timeout_s
        while view:
            try:
                view = view[os.write(self._in, view) :]
            except BlockingIOError:
                if not self._poll(self._in, select.POLLOUT, deadline - time.monotonic()):
                    self._timed_out()
            except OSError:
                self._died()

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        clock = _Deadline(self._process.pid, timeout_s)
        return decode(self._read(body_length(self._read(HEADER.size, clock)), clock))

    def _read(self, size: int, clock: _Deadline) -> bytes:
        data = b""
        while len(data) < size:
            try:
                piece = os.read(self._out, size - len(data))
            except BlockingIOError:
                while not self._poll(self._out, select.POLLIN, clock.remaining()):
                    if not clock.extend():
                        self._timed_out()
                continue
            except OSError:
                piece = b""
            if not piece:
                self._died()
            data += piece
        return data

    @staticmethod
    def _poll(fd: int, event: int, seconds: float) -> bool:
        poll = select.poll()
        poll.register(fd, event)
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def _timed_out(self) -> None:
        self.kill()
        raise WorkerTimeoutError

    def _died(self) -> None:
        # The pipe closes shortly before the process can be collected: wait, or the return code would be that of our own
        # kill.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self.kill()
        raise WorkerDiedError(self._process.returncode)


class _Deadline:
    """A wall-clock deadline that is extended by the CPU time that the worker did not get on a busy machine.

    Without the extension, the same answer would be right on an idle machine and a timeout on a busy one.
    """

    def __init__(self, pid: int, timeout_s: float) -> None:
        self._pid = pid
        self._timeout_s = timeout_s
        start = time.monotonic()
        self._at = start + timeout_s
        self._last = start + STARVED_FACTOR * timeout_s
        self._cpu = cpu_seconds(pid)

    def remaining(self) -> float:
        return self._at - time.monotonic()

    def extend(self) -> bool:
        """Extend the deadline if the worker got too little CPU time; return whether it was extended."""
        now = time.monotonic()
        used = cpu_seconds(self._pid)
        if self._cpu is None or used is None or now >= self._last:
            return False
        owed = self._timeout_s - (used - self._cpu)
        if owed < max(0.1 * self._timeout_s, 2.0 / _TICKS):
            return False
        self._at = min(self._last, now + owed)
        return True


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU seconds that a process has used; ``None`` if the system does not report it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _environment() -> dict[str, str]:
    """Return the worker's environment variables, without secrets. A fixed hash seed makes verdicts reproducible."""
    inherited = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "HOME", "TMPDIR")
    return {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        **{name: os.environ[name] for name in inherited if name in os.environ},
    }
