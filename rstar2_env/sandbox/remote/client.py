"""``RemoteSandbox``: the sandbox of the ``remote`` provider.

Covered: calls from any thread and event loop, handed to one background thread that communicates with the servers;
forks, pickling, shutdown. Not covered: which server gets what (``dispatch``).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from rstar2_env.core.errors import MissingExtraError, SandboxUnavailableError
from rstar2_env.sandbox.base import CLOSED, BaseSandbox, Pending, warn_caller
from rstar2_env.sandbox.job import Capability, Job, Outcome
from rstar2_env.sandbox.remote.calls import Call
from rstar2_env.sandbox.remote.dispatch import Dispatcher
from rstar2_env.sandbox.remote.link import LinkError
from rstar2_env.sandbox.remote.options import RemoteOptions

_CLOSE_S = 2.0


class RemoteSandbox(BaseSandbox):
    """Runs Python programs on sandbox servers (``rstar2 sandbox serve``). Safe to call from any thread.

    Args:
        **options: See ``RemoteOptions``.

    Raises:
        ConfigurationError: An option is wrong.
        MissingExtraError: The extra ``remote`` is not installed.
        SandboxUnavailableError: No server answers, or none provides the requested isolation.
    """

    options: RemoteOptions
    unisolated = None  # the servers are not asked for their isolation then
    lacking = "The sandbox servers run without layers that their machines do not provide"

    def __init__(self, **options: Any) -> None:
        try:
            import httpx  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("remote", "The remote sandbox") from error
        super().__init__(RemoteOptions.of(options))
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
        self._started()

    # The protocol

    def end_session(self, name: str) -> None:
        """End a session and forget its state. Unknown names are ignored."""
        with self._lock:
            if not self._closed and self._dispatcher is not None:
                self._loop.call_soon_threadsafe(self._dispatcher.end_session, name)

    def capabilities(self) -> Sequence[Capability]:
        """Each layer of isolation; active if every server that is up has it."""
        merged: dict[str, Capability] = {}
        for link in self._dispatcher.links if self._dispatcher is not None else ():
            for layer in link.layers if link.up else ():
                known = merged.get(layer.name)
                if known is None or (known.active and not layer.active):
                    merged[layer.name] = layer
        return tuple(merged.values())

    def _end(self) -> None:
        with contextlib.suppress(RuntimeError):  # the thread has ended already
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    # Calls

    def _submit(self, job: Job) -> Call:
        return self._submit_many([job])[0]

    def _submit_many(self, jobs: Sequence[Job]) -> Sequence[Call]:
        with self._lock:
            number = self._next_id
            self._next_id += len(jobs)
        calls = [Call(f"{self._client}-{number + place}", job, self._drop) for place, job in enumerate(jobs)]
        for call in calls:
            call.future.add_done_callback(partial(self._forget, call))
        with self._lock:
            self._refuse_if_closed()
            self._calls.update(calls)
            wake = not self._inbox
            self._inbox += calls
            if wake:
                self._loop.call_soon_threadsafe(self._collect)
        return calls

    def _forget(self, call: Call, _: Future[Outcome]) -> None:
        self._calls.discard(call)

    def _drop(self, pending: Sequence[Pending]) -> None:
        unfinished = [
            call for call in pending if isinstance(call, Call) and (call in self._calls or call.future.cancelled())
        ]
        with self._lock:
            if self._closed or not unfinished:
                return
            self._loop.call_soon_threadsafe(self._drop_inside, unfinished)

    # The thread

    def _main(self, failed: list[str], ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(failed, ready))
        except Exception as error:  # waiting callers must be told of any failure
            failed.append(f"{type(error).__name__}: {error}")
        with self._lock:
            self._closed = True
            calls = list(self._calls)
        for call in calls:
            call.lose(CLOSED if not failed else f"The client of the servers failed: {failed[0]}")
        self._loop.close()
        ready.set()

    async def _serve(self, failed: list[str], ready: threading.Event) -> None:
        import httpx

        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self.options.token is not None:
            headers["Authorization"] = f"Bearer {self.options.token}"
        # A proxy from the environment is meant for the internet, not for servers of the local network.
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
        """Also warn about limits that a server would lower."""
        super()._warn_of_gaps()
        assert self._dispatcher is not None  # it has started
        for link in self._dispatcher.links:
            cut = [
                f"{name} to {bound:g}"
                for name, bound in link.max_limits.items()
                if bound is not None and (getattr(self.options.limits, name, None) or 0) > bound
            ]
            if cut:
                warn_caller(f"The sandbox server {link.url} lowers these limits: {', '.join(cut)}.")
