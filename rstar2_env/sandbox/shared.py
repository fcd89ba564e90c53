"""One sandbox for a whole process: counted by reference, safe across forks, pickled as its options.

Covered: who shares what, and when it ends. Not covered: running (the providers).
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox.job import Capability, Job, Outcome, Sandbox
from rstar2_env.sandbox.providers import make_sandbox


class _Entry:
    """A sandbox that handles share, and how many of them are open."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sandbox: Sandbox | None = None
        self.handles = 0


_Key = tuple[int, str, tuple[tuple[str, Any], ...]]
_entries: dict[_Key, _Entry] = {}
_guard = threading.Lock()
_handles: weakref.WeakSet[SharedSandbox] = weakref.WeakSet()


class SharedSandbox:
    """A handle on the process's one sandbox of some provider and options. Closing the last handle ends it.

    A process that was forked from the one that made the handle gets a sandbox of its own on the first call.
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
        """Run one job and wait for it."""
        return self._sandbox().run(job)

    async def arun(self, job: Job) -> Outcome:
        """Run one job without blocking the event loop. Cancelling it ends the program."""
        return await self._sandbox().arun(job)

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs at once; outcomes come in the order of the jobs."""
        return self._sandbox().run_many(jobs)

    def capabilities(self) -> Sequence[Capability]:
        """Each layer of isolation and whether it is active."""
        return self._sandbox().capabilities()

    def end_session(self, name: str) -> None:
        """End a session and forget its state. A name that no session has is harmless."""
        self._sandbox().end_session(name)

    def close(self) -> None:
        """Give the handle back; the last one ends the sandbox. Closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            entry, self._entry = self._entry, None
        if entry is not None and self._pid == os.getpid():
            _release(_key(self._provider, self._options), entry)

    def __enter__(self) -> Self:
        """Start using it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give the handle back."""
        self.close()

    def __del__(self) -> None:
        """A handle that was forgotten counts no longer."""
        if getattr(self, "_entry", None) is not None:
            self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its options: where it is unpickled, it shares that process's sandbox."""
        return _rebuild, (self._provider, self._options)

    def _sandbox(self) -> Sandbox:
        with self._lock:
            if self._closed:
                raise SandboxUnavailableError("This handle on the shared sandbox is closed; ask for another.")
            if self._entry is None or self._pid != os.getpid():
                self._entry, self._pid = _acquire(self._provider, self._options), os.getpid()
            sandbox = self._entry.sandbox
            assert sandbox is not None  # an entry that was acquired has one
            return sandbox


def shared_sandbox(provider: str = "local", **options: Any) -> SharedSandbox:
    """Return a handle on the one sandbox that this process has for the provider and options.

    Args:
        provider: Name of a registered provider.
        **options: Its options.

    Raises:
        UnknownNameError: No provider has that name.
        ConfigurationError: An option is wrong.
        SandboxUnavailableError: It cannot start, or cannot give the isolation that was asked for.
    """
    return SharedSandbox(provider, **options)


def _acquire(provider: str, options: dict[str, Any]) -> _Entry:
    key = _key(provider, options)
    with _guard:
        entry = _entries.setdefault(key, _Entry())
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
    with _guard:
        entry.handles -= 1
        if entry.handles > 0:
            return
        if _entries.get(key) is entry:
            del _entries[key]
    if entry.sandbox is not None:
        entry.sandbox.close()


def _key(provider: str, options: dict[str, Any]) -> _Key:
    """What handles must have in common to share: the process, the provider and the options."""
    frozen = tuple(sorted((name, _hashable(value)) for name, value in options.items()))
    return os.getpid(), provider, frozen


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(item)) for name, item in value.items()))
    if isinstance(value, list | tuple | set):
        return tuple(_hashable(item) for item in value)
    return value


def _rebuild(provider: str, options: dict[str, Any]) -> SharedSandbox:
    return SharedSandbox(provider, **options)


@atexit.register
def _close_all() -> None:
    with _guard:
        mine = [entry for key, entry in _entries.items() if key[0] == os.getpid()]
        _entries.clear()
    for entry in mine:
        if entry.sandbox is not None:
            entry.sandbox.close()


def _after_fork() -> None:
    """A fork may have come while another thread held a lock, and none of the entries is the child's."""
    global _guard
    _guard = threading.Lock()
    _entries.clear()
    for handle in list(_handles):
        handle._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
