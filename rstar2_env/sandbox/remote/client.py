"""``RemoteSandbox``: what a caller holds of the ``remote`` provider.

Covered: calls from any thread and event loop, handed to one background thread that speaks with the servers; forks,
pickling, the end. Not covered: which server gets what (``dispatch``).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import secrets
import ssl
import threading
import warnings
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Self

from rstar2_env.core.errors import MissingExtraError, SandboxUnavailableError
from rstar2_env.sandbox.job import Capability, Job, Outcome
from rstar2_env.sandbox.remote.calls import Call
from rstar2_env.sandbox.remote.dispatch import Dispatcher
from rstar2_env.sandbox.remote.link import LinkError
from rstar2_env.sandbox.remote.options import RemoteOptions

_CLOSE_S = 2.0


class RemoteSandbox:
    """Runs Python programs on sandbox servers (``rstar2 sandbox serve``). Safe to call from any thread.

    Args:
        **options: See ``RemoteOptions``.

    Raises:
        ConfigurationError: An option is wrong.
        MissingExtraError: The extra ``remote`` is not installed.
        SandboxUnavailableError: No server answers, or none gives the isolation that was asked for.
    """

    def __init__(self, **options: Any) -> None:
        try:
            import httpx  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("remote", "The remote sandbox") from error
        self.options = RemoteOptions.of(options)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._closed = False
        self._client = secrets.token_hex(16)
        self._next_id = 0
        self._calls: set[Call] = set()
        self._inbox: list[Call] = []
        self._loop = asyncio.new_event_loop()
        self._dispatcher: Dispatcher | None = None
        self._stop = asyncio.Event()
        started: list[str] = []
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._main, args=(started, ready), name="rstar2-sandbox-remote", daemon=True
        )
        self._thread.start()
        ready.wait()
        if started:
            self._thread.join()
            raise SandboxUnavailableError(f"No sandbox server can be used: {started[0]}")
        _live.add(self)
        self._warn_of_gaps()

    # The protocol

    def run(self, job: Job) -> Outcome:
        """Run one job and wait for it; a failure of our own is an ``unavailable`` outcome."""
        return self.run_many([job])[0]

    async def arun(self, job: Job) -> Outcome:
        """Run one job without blocking the event loop. Cancelling it ends the program."""
        calls = self._submit([job])
        try:
            return await asyncio.wrap_future(calls[0].future)
        except asyncio.CancelledError:
            self._drop(calls)
            raise

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs at once, as many as the servers have room for; outcomes come in the order of the jobs."""
        calls = self._submit(jobs)
        try:
            return [call.future.result() for call in calls]
        except BaseException:
            self._drop(calls)
            raise

    def end_session(self, name: str) -> None:
        """End a session; an unknown name is harmless."""
        with self._lock:
            if not self._closed and self._dispatcher is not None and os.getpid() == self._pid:
                self._loop.call_soon_threadsafe(self._dispatcher.end_session, name)

    def capabilities(self) -> Sequence[Capability]:
        """Each layer of isolation; active where every server that is up has it."""
        merged: dict[str, Capability] = {}
        for link in self._dispatcher.links if self._dispatcher is not None else ():
            for layer in link.layers if link.up else ():
                known = merged.get(layer.name)
                if known is None or (known.active and not layer.active):
                    merged[layer.name] = layer
        return tuple(merged.values())

    def close(self) -> None:
        """Let go of the servers: calls in flight are ended there and become ``unavailable``, sessions end."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if os.getpid() == self._pid:
            with contextlib.suppress(RuntimeError):  # the thread has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def __enter__(self) -> Self:
        """Start using it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close it."""
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its options: another process gets a client of its own."""
        return _rebuild, (type(self), self.options.as_given())

    # Calls

    def _submit(self, jobs: Sequence[Job]) -> list[Call]:
        if os.getpid() != self._pid:
            raise SandboxUnavailableError(
                "This sandbox belongs to the process that made it, and this is a fork of that one: make another here, "
                "or use shared_sandbox, which does so by itself."
            )
        with self._lock:
            number = self._next_id
            self._next_id += len(jobs)
        calls = [Call(f"{self._client}-{number + place}", job) for place, job in enumerate(jobs)]
        for call in calls:
            call.future.add_done_callback(partial(self._forget, call))
        with self._lock:
            if self._closed:
                raise SandboxUnavailableError("This sandbox is closed; make another one.")
            self._calls.update(calls)
            wake = not self._inbox
            self._inbox += calls
            if wake:
                self._loop.call_soon_threadsafe(self._collect)
        return calls

    def _forget(self, call: Call, _: Future[Outcome]) -> None:
        self._calls.discard(call)

    def _drop(self, calls: Iterable[Call]) -> None:
        """Nobody waits any more: end the programs."""
        unfinished = [call for call in calls if call in self._calls or call.future.cancelled()]
        with self._lock:
            if self._closed or not unfinished:
                return
            self._loop.call_soon_threadsafe(self._drop_inside, unfinished)

    # The thread

    def _main(self, failed: list[str], ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(failed, ready))
        except Exception as error:  # whatever it is, those who wait must hear of it
            failed.append(f"{type(error).__name__}: {error}")
        with self._lock:
            self._closed = True
            calls = list(self._calls)
        for call in calls:
            call.lose("The sandbox was closed." if not failed else f"The client of the servers failed: {failed[0]}")
        self._loop.close()
        ready.set()

    async def _serve(self, failed: list[str], ready: threading.Event) -> None:
        import httpx

        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self.options.token is not None:
            headers["Authorization"] = f"Bearer {self.options.token}"
        # A proxy of the environment is for the world outside, not for servers next door.
        async with httpx.AsyncClient(
            headers=headers,
            verify=ssl.create_default_context(cafile=self.options.ca_file),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=3.0),
            trust_env=False,
        ) as http:
            dispatcher = Dispatcher(self.options, http, self._client)
            try:
                await dispatcher.start()
            except LinkError as error:
                failed.append(str(error))
                await dispatcher.close(0.0)
                return
            self._dispatcher = dispatcher
            ready.set()
            await self._stop.wait()
            await dispatcher.close(_CLOSE_S)

    def _collect(self) -> None:
        with self._lock:
            calls, self._inbox = self._inbox, []
        if self._dispatcher is not None:
            self._dispatcher.submit(calls)

    def _drop_inside(self, calls: list[Call]) -> None:
        if self._dispatcher is not None:
            self._dispatcher.drop(calls)

    def _warn_of_gaps(self) -> None:
        """Say once what ``"best"`` has to do without, and which limits would be cut."""
        assert self._dispatcher is not None  # it has started
        gaps = [
            f"{layer.name} ({layer.detail})" for layer in self.capabilities() if layer.required and not layer.active
        ]
        if gaps and self.options.isolation == "best":
            text = f"The sandbox servers do without what their machines do not give: {'; '.join(gaps)}."
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        for link in self._dispatcher.links:
            cut = [
                f"{name} to {bound:g}"
                for name, bound in link.max_limits.items()
                if bound is not None and (getattr(self.options.limits, name, None) or 0) > bound
            ]
            if cut:
                text = f"The sandbox server {link.url} cuts the limits down: {', '.join(cut)}."
                warnings.warn(text, RuntimeWarning, stacklevel=3)


def _rebuild(kind: type[RemoteSandbox], options: dict[str, Any]) -> RemoteSandbox:
    return kind(**options)


_live: weakref.WeakSet[RemoteSandbox] = weakref.WeakSet()
_left_behind: list[RemoteSandbox] = []


@atexit.register
def _close_all() -> None:
    """End what was never closed, so that no server goes on with programs that nobody waits for."""
    for sandbox in list(_live):
        if sandbox._pid == os.getpid():
            sandbox.close()


def _after_fork() -> None:
    """Keep what belongs to the parent: taking its event loop apart here would take it apart there, too."""
    for sandbox in list(_live):
        sandbox._lock = threading.Lock()
        _left_behind.append(sandbox)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
