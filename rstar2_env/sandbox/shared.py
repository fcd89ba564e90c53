"""``SharedSandbox``: one sandbox per process for all users that request the same provider and options.

Each user has a handle. A forked process, and a process that unpickles a handle, use their own sandbox. When the last
handle is closed, the sandbox is kept for a while, since a program that makes an environment for each problem needs the
sandbox again immediately and would otherwise wait for a new one each time. At most ``KEEP_MOST`` idle sandboxes are
kept, each for ``KEEP_S`` seconds, without running programs or live sessions; all of them end with the process. Covered:
which handles share a sandbox, and when it ends. Not covered: how jobs run (the providers).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox.job import Capability, Job, Outcome, Sandbox
from rstar2_env.sandbox.messages import check_job
from rstar2_env.sandbox.providers import make_sandbox
from rstar2_env.sandbox.session_names import SessionNames

KEEP_S = 30.0
"""Seconds for which a sandbox is kept after its last handle was closed."""
KEEP_MOST = 4
"""Largest number of sandboxes that are kept without a handle; if there are more, the longest idle one is ended."""

_Key = tuple[int, str, tuple[tuple[str, Any], ...]]


class _Entry:
    """A sandbox that several handles share.

    Attributes:
        lock: Held while the sandbox is created, and while ``calls`` or ``sessions`` change.
        sandbox: The sandbox, once it exists.
        handles: Number of open handles.
        calls: Number of calls in flight.
        sessions: The sessions that were started and not ended.
        timer: Ends the sandbox after ``KEEP_S`` seconds without handles.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sandbox: Sandbox | None = None
        self.handles = 0
        self.calls = 0
        self.sessions = SessionNames()
        self.timer: threading.Timer | None = None


class SharedSandbox(Sandbox):
    """A handle on a sandbox that all users in this process share if they request the same provider and options.

    When the last handle is closed, all sessions end, and the sandbox ends ``KEEP_S`` seconds later. If a call is in
    flight when the last handle is closed, the sandbox ends immediately and the call becomes ``unavailable``. In a fork
    of the process that created the handle, the first call creates a separate sandbox.
    """

    def __init__(self, provider: str = "local", **options: Any) -> None:
        self._provider = provider
        self._options = options
        self._closed = False
        self._lock = threading.Lock()
        self._entry: _Entry | None = None
        self._pid = 0
        _handles.add(self)
        self._sandbox()

    def run(self, job: Job) -> Outcome:
        """Run one job and wait for its outcome."""
        with self._call([job]) as (sandbox, outcomes):
            outcomes.append(sandbox.run(job))
        return outcomes[0]

    async def arun(self, job: Job) -> Outcome:
        """Run one job without blocking the event loop. Cancelling the coroutine ends the program."""
        with self._call([job]) as (sandbox, outcomes):
            outcomes.append(await sandbox.arun(job))
        return outcomes[0]

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs, as many in parallel as there are workers; return the outcomes in the order of the jobs."""
        with self._call(jobs) as (sandbox, outcomes):
            outcomes += sandbox.run_many(jobs)
        return outcomes

    def capabilities(self) -> Sequence[Capability]:
        """Return each layer of isolation, and whether it is active."""
        return self._sandbox().capabilities()

    def end_session(self, name: str) -> None:
        """End a session and delete its state; an unknown name is ignored."""
        entry = self._open()
        with entry.lock:
            entry.sessions.forget(name)
        _made(entry).end_session(name)

    def close(self) -> None:
        """Close the handle; a second call has no effect."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            entry, self._entry = self._entry, None
        if entry is not None and self._pid == os.getpid():
            _release(_key(self._provider, self._options), entry)

    def __del__(self) -> None:
        """Close a handle that was garbage-collected without ``close``."""
        if getattr(self, "_entry", None) is not None:
            self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the options only: the unpickled handle shares the sandbox of its process."""
        return partial(SharedSandbox, self._provider, **self._options), ()

    def _open(self) -> _Entry:
        with self._lock:
            if self._closed:
                raise SandboxUnavailableError(
                    "This handle to the shared sandbox is closed: call shared_sandbox again to get a new one."
                )
            if self._entry is None or self._pid != os.getpid():
                self._entry, self._pid = _acquire(self._provider, self._options), os.getpid()
            return self._entry

    def _sandbox(self) -> Sandbox:
        return _made(self._open())

    @contextlib.contextmanager
    def _call(self, jobs: Sequence[Job]) -> Iterator[tuple[Sandbox, list[Outcome]]]:
        """Count a call as in flight within the ``with`` block. Yield the sandbox and an empty list for the outcomes.

        The caller adds the outcomes to the list; they show which sessions stay alive.
        """
        for job in jobs:
            check_job(job)
        entry = self._open()
        outcomes: list[Outcome] = []
        with entry.lock:
            entry.calls += 1
            for job in jobs:
                if job.session is not None:
                    entry.sessions.note(job.session, "new")
        try:
            yield _made(entry), outcomes
        finally:
            with entry.lock:
                entry.calls -= 1
                for job, outcome in zip(jobs, outcomes, strict=False):  # no outcomes: the call was cancelled
                    if job.session is not None and outcome.session is not None:
                        entry.sessions.note(job.session, outcome.session)


def shared_sandbox(provider: str = "local", **options: Any) -> SharedSandbox:
    """Return a handle on this process's shared sandbox for a provider and its options.

    Args:
        provider: Name of a registered provider.
        **options: Options of the provider.

    Raises:
        UnknownNameError: No provider has that name.
        ConfigurationError: An option is invalid.
        SandboxUnavailableError: The sandbox cannot start, or cannot provide the requested isolation.
    """
    return SharedSandbox(provider, **options)


def end_idle_sandboxes() -> None:
    """End now, instead of after ``KEEP_S`` seconds, every shared sandbox that has no open handle."""
    with _guard:
        ended = [_forget(key) for key in list(_idle)]
    for entry in ended:
        _made(entry).close()


# Reentrant: the garbage collector may close a handle in this thread while the lock is held.
_guard = threading.RLock()
_entries: dict[_Key, _Entry] = {}
_idle: OrderedDict[_Key, _Entry] = OrderedDict()  # without handles; longest idle first
_handles: weakref.WeakSet[SharedSandbox] = weakref.WeakSet()
_ending: set[threading.Thread] = set()  # timers that are ending an idle sandbox
_exiting = False
_inherited: list[_Entry] = []  # after a fork: entries of the parent, which this process must not finalize


def _acquire(provider: str, options: dict[str, Any]) -> _Entry:
    key = _key(provider, options)
    with _guard:
        entry = _entries.get(key)
        if entry is None or getattr(entry.sandbox, "closed", False):  # it may have failed while idle
            entry = _entries[key] = _Entry()
        _stop_timer(key)
        entry.handles += 1
    try:
        with entry.lock:
            if entry.sandbox is None:
                entry.sandbox = make_sandbox(provider, **options)
    except BaseException:
        _release(key, entry)
        raise
    return entry


def _release(key: _Key, entry: _Entry) -> None:
    """Drop a handle. A sandbox without handles is ended if it is busy, else kept; at most ``KEEP_MOST`` are kept."""
    with _guard:
        entry.handles -= 1
        if entry.handles > 0:
            return
        ended: list[_Entry] = []
        if _may_be_kept(key, entry):
            _idle[key] = entry
            while len(_idle) > KEEP_MOST:
                ended.append(_forget(next(iter(_idle))))
        else:
            if _entries.get(key) is entry:
                _forget(key)
            ended.append(entry)
    for each in ended:
        if each.sandbox is not None:
            each.sandbox.close()


def _may_be_kept(key: _Key, entry: _Entry) -> bool:
    if entry.sandbox is None or entry.calls or _entries.get(key) is not entry or _exiting:
        return False
    try:
        for name in entry.sessions.names():
            entry.sandbox.end_session(name)
            entry.sessions.forget(name)
        entry.timer = threading.Timer(KEEP_S, _end_idle, (key, entry))
        entry.timer.name, entry.timer.daemon = "rstar2-sandbox-idle", True
        entry.timer.start()
    except Exception:  # the sandbox failed, or the interpreter no longer starts threads
        return False
    return True


def _forget(key: _Key) -> _Entry:
    _stop_timer(key)
    return _entries.pop(key)


def _stop_timer(key: _Key) -> None:
    entry = _idle.pop(key, None)
    if entry is not None and entry.timer is not None:
        entry.timer.cancel()


def _end_idle(key: _Key, entry: _Entry) -> None:
    """End a sandbox that got no handle since its timer was started; runs in the timer's thread."""
    timer = threading.current_thread()
    with _guard:
        if _idle.get(key) is not entry or entry.timer is not timer or _exiting:
            return
        _forget(key)
        _ending.add(timer)
    with contextlib.suppress(Exception):  # the caller cannot handle it
        _made(entry).close()
    _ending.discard(timer)


def _made(entry: _Entry) -> Sandbox:
    assert entry.sandbox is not None  # an entry that was acquired has one
    return entry.sandbox


def _key(provider: str, options: dict[str, Any]) -> _Key:
    """Return the key of a shared sandbox: process id, provider and hashable options."""
    frozen = tuple(sorted((name, _hashable(value)) for name, value in options.items()))
    return os.getpid(), provider, frozen


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(item)) for name, item in value.items()))
    if isinstance(value, list | tuple | set):
        return tuple(_hashable(item) for item in value)
    return value


@atexit.register
def _close_all() -> None:
    global _exiting
    with _guard:
        _exiting, ending = True, list(_ending)
    for timer in ending:
        timer.join()
    with _guard:
        mine = [entry for key, entry in _entries.items() if key[0] == os.getpid()]
        _entries.clear()
        _idle.clear()
    for entry in mine:
        if entry.sandbox is not None:
            entry.sandbox.close()


def _after_fork() -> None:
    """Replace locks that another thread may have held at the fork, and forget the parent process's sandboxes."""
    global _guard, _exiting
    _guard, _exiting = threading.RLock(), False
    _ending.clear()
    _inherited.extend(_entries.values())
    _entries.clear()
    _idle.clear()
    for handle in list(_handles):
        handle._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
