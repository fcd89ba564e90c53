"""``BaseSandbox``: base class with the code that the sandboxes of all providers share.

Covered: how callers wait for jobs (blocking and async), rejection of invalid jobs, use as a context manager, closing,
forks, pickling, cleanup at process exit, and the warning about missing isolation. Not covered: how a job is run. A
custom provider does not have to subclass ``BaseSandbox``: it must implement ``Sandbox`` (``job``), and
``rstar2_env.testing.check_sandbox`` tests whether it does.
"""

from __future__ import annotations

import abc
import asyncio
import atexit
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from types import FrameType
from typing import Any, ClassVar, Protocol

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.core.telemetry import report_job
from rstar2_env.sandbox.job import Capability, Job, Outcome, Sandbox
from rstar2_env.sandbox.messages import check_job

CLOSED = "The sandbox was closed before the program finished."
"""Error message of calls that were in flight when their sandbox was closed."""


class PendingJob(Protocol):
    """A submitted job, whose outcome may not be known yet."""

    @property
    def future(self) -> Future[Outcome]:
        """Future that receives the outcome of the job."""
        ...

    def drop(self) -> None:
        """Stop waiting for the outcome and end the program."""
        ...


class SandboxOptions(Protocol):
    """Interface of a provider's options, as ``BaseSandbox`` needs it."""

    def as_given(self) -> dict[str, Any]:
        """Return the options as keyword arguments that construct equal options."""
        ...


class BaseSandbox(Sandbox, abc.ABC):
    """Base class of the sandboxes of all providers. Safe to call from any thread.

    A provider defines ``_submit``, ``_end``, ``capabilities`` and ``end_session``. Its constructor takes its options by
    keyword, calls ``BaseSandbox.__init__`` first and ``_started`` last.

    Args:
        options: The provider's options. Unpickling constructs a new sandbox from them.

    Attributes:
        unisolated: Text of the warning under ``isolation="none"``; ``None`` for no warning.
        lacking: Beginning of the warning under ``isolation="best"``; the list of missing layers follows.
    """

    options: SandboxOptions
    unisolated: ClassVar[str | None] = (
        "isolation='none': the programs run with all the rights of this process, and can read, change "
        "and delete your files. Use it for debugging only."
    )
    lacking: ClassVar[str] = "The sandbox runs without isolation layers that this machine does not provide"

    def __init__(self, options: SandboxOptions) -> None:
        self.options = options
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._closed = False

    # Methods that a provider defines

    @abc.abstractmethod
    def _submit(self, job: Job) -> PendingJob:
        """Start a job without waiting for it.

        Raises:
            ConfigurationError: The provider does not support a field of the job, such as ``session``.
            SandboxUnavailableError: The sandbox was closed while the job was submitted.
        """

    @abc.abstractmethod
    def _end(self) -> None:
        """End every process that belongs to the sandbox; called once, in the process that created the sandbox.

        Calls in flight get an ``unavailable`` outcome.
        """

    @abc.abstractmethod
    def capabilities(self) -> Sequence[Capability]:
        """Return each layer of isolation, and whether it is active."""

    @abc.abstractmethod
    def end_session(self, name: str) -> None:
        """End a session and delete its state; an unknown name is ignored."""

    def _submit_many(self, jobs: Sequence[Job]) -> Sequence[PendingJob]:
        """Start several jobs. If a job cannot be started, drop the jobs before it, and raise the error."""
        pending: list[PendingJob] = []
        try:
            for job in jobs:
                pending.append(self._submit(job))
        except BaseException:
            self._drop(pending)
            raise
        return pending

    def _drop(self, pending: Sequence[PendingJob]) -> None:
        """Stop waiting for these jobs and end their programs."""
        for each in pending:
            each.drop()

    def _forked(self) -> None:  # optional: most providers have nothing to release
        """In a forked child process, close the inherited descriptors; the sandbox still belongs to the parent."""

    @property
    def _isolation(self) -> str:
        """The isolation mode: "strict", "best" or "none"."""
        return str(getattr(self.options, "isolation", "strict"))

    # The protocol

    def submit(self, job: Job) -> PendingJob:
        """Start a job without waiting for it.

        Raises:
            ConfigurationError: The job is invalid.
            SandboxUnavailableError: The sandbox is closed, or belongs to another process.
        """
        self._check(job)
        return self._submit(job)

    def run(self, job: Job) -> Outcome:
        """Run one job and wait for its outcome, which has the status ``unavailable`` if the sandbox itself fails."""
        return self.run_many([job])[0]

    async def arun(self, job: Job) -> Outcome:
        """Run one job without blocking the event loop. Cancelling the coroutine ends the program."""
        pending = self.submit(job)
        try:
            outcome = await asyncio.wrap_future(pending.future)
        except asyncio.CancelledError:
            self._drop([pending])
            raise
        report_job(type(self).__name__, outcome.status, outcome.wall_s)
        return outcome

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs, as many in parallel as there are workers; return the outcomes in the order of the jobs."""
        for job in jobs:
            self._check(job)
        pending = self._submit_many(jobs)
        try:
            outcomes = [each.future.result() for each in pending]
        except BaseException:
            self._drop(pending)
            raise
        for outcome in outcomes:
            report_job(type(self).__name__, outcome.status, outcome.wall_s)
        return outcomes

    @property
    def closed(self) -> bool:
        """Whether the sandbox accepts no more jobs: it was closed, or has failed permanently."""
        return self._closed

    def close(self) -> None:
        """End all processes of the sandbox. Calls in flight end as ``unavailable``. Closing again has no effect."""
        _open.discard(self)
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if os.getpid() == self._pid:
            self._end()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the options only: unpickling starts a new sandbox."""
        return partial(type(self), **self.options.as_given()), ()

    # Methods that a provider calls

    def _started(self) -> None:
        """Register the sandbox to be closed at exit and disabled in forked processes; warn about missing isolation."""
        _open.add(self)
        # Exit hooks run in the reverse order of their registration. This hook is registered again, so that it runs
        # before the hooks of libraries that a sandbox needs, such as Ray's.
        atexit.unregister(_close_all)
        atexit.register(_close_all)
        try:
            self._warn_of_gaps()
        except BaseException:  # a warning filter may turn the warning into an error
            self.close()
            raise

    def _check(self, job: Job) -> None:
        if os.getpid() != self._pid:
            raise SandboxUnavailableError(
                "This sandbox was created in the parent process, before a fork, and cannot be used in this "
                "process. Create a new sandbox here, or use shared_sandbox, which creates a sandbox in each "
                "process."
            )
        self._refuse_if_closed()
        check_job(job)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise SandboxUnavailableError("This sandbox is closed: create a new one.")

    def _gaps(self) -> list[str]:
        """Return the required layers that are missing, each with the reason."""
        missing = (layer for layer in self.capabilities() if layer.required and not layer.active)
        return [f"{layer.name} ({layer.detail})" for layer in missing]

    def _warn_of_gaps(self) -> None:
        """Warn if isolation is off; under ``isolation="best"``, warn about missing layers, once per process."""
        if self._isolation == "none" and self.unisolated is not None:
            warn_caller(self.unisolated)
        elif self._isolation == "best" and (gaps := self._gaps()):
            warn_once(f"{self.lacking}: {'; '.join(gaps)}.")


def warn_once(text: str) -> None:
    """Issue a warning as ``warn_caller`` does, but only once per process for each text."""
    if text not in _warned:
        _warned.add(text)
        warn_caller(text)


def warn_caller(text: str) -> None:
    """Issue a ``RuntimeWarning`` that points to the line of user code that called into this package."""
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe()
    here: FrameType | None = frame
    while here is not None and str(here.f_globals.get("__name__", "")).partition(".")[0] == package:
        level, here = level + 1, here.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=level if here is not None else 2)


def settle(future: Future[Outcome], result: Outcome | Exception) -> None:
    """Set the outcome or the exception of a call's future, unless the future was cancelled."""
    if future.done() or not future.set_running_or_notify_cancel():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


_open: set[BaseSandbox] = set()
_warned: set[str] = set()
_inherited: list[BaseSandbox] = []  # sandboxes of the parent process: to finalize them here would break them there


def _close_all() -> None:
    """Close the sandboxes that are still open; called at exit, while daemon threads still run."""
    for sandbox in list(_open):
        sandbox.close()


def _after_fork() -> None:
    for sandbox in list(_open):
        sandbox._lock, sandbox._closed = threading.Lock(), True
        sandbox._forked()
        _inherited.append(sandbox)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
