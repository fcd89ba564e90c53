"""``FleetSandbox``: a sandbox that runs its calls on servers; one background thread sends all calls.

Covered: the thread, its event loop, the pool of connections, how calls are accepted, forks, pickling, shutdown. Not
covered: the list of servers, which a provider supplies (``remote``: addresses, ``ray``: the nodes of a cluster), and
the distribution of calls (``dispatch``).
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import secrets
import ssl
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.core.secret import Secret, bearer
from rstar2_env.sandbox.base import CLOSED, BaseSandbox, PendingJob
from rstar2_env.sandbox.fleet.calls import FleetCall
from rstar2_env.sandbox.fleet.dispatch import Dispatcher
from rstar2_env.sandbox.fleet.options import FleetOptions
from rstar2_env.sandbox.fleet.servers import FleetServers
from rstar2_env.sandbox.job import Job, Outcome

if TYPE_CHECKING:
    import httpx

_CLOSE_S = 2.0


class FleetSandbox(BaseSandbox):
    """A sandbox that runs programs on servers of ``rstar2_env.sandbox.serve``. Safe to call from any thread.

    A provider defines ``_serving`` and ``capabilities``. Its constructor calls ``FleetSandbox.__init__``,
    ``_connect`` and ``_started``, in this order.

    Args:
        options: The provider's options.
        token: Token that the servers require; ``None`` if they require none.
        ca_file: File of certificates to trust for HTTPS; ``None`` means the system's certificates.

    Attributes:
        thread_name: Name of the background thread.
    """

    options: FleetOptions
    thread_name: ClassVar[str]

    def __init__(self, options: FleetOptions, *, token: Secret | None, ca_file: str | None = None) -> None:
        super().__init__(options)
        self._token, self._ca_file = token, ca_file
        self._client = secrets.token_hex(16)
        self._next_id = 0
        self._calls: set[FleetCall] = set()
        self._inbox: list[FleetCall] = []
        self._loop = asyncio.new_event_loop()
        self._dispatcher: Dispatcher | None = None
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._trouble: Exception | None = None
        self._over = False  # the thread accepts no more calls
        self._thread = threading.Thread(target=self._main, name=self.thread_name, daemon=True)

    # Methods that a provider defines

    @abc.abstractmethod
    def _serving(self, servers: FleetServers, http: httpx.AsyncClient) -> AbstractAsyncContextManager[None]:
        """Return a context manager that adds servers to ``servers`` on entry.

        Until its exit, the context manager may add further servers and remove servers.

        Raises:
            ConfigurationError: A server rejects an option.
            SandboxUnavailableError: No server can be used.
        """

    def _connect(self) -> None:
        """Find the servers, and return when calls can be accepted.

        Raises:
            ConfigurationError, SandboxUnavailableError: See ``_serving``.
        """
        self._thread.start()
        self._ready.wait()
        if self._trouble is not None:
            self._thread.join()
            raise self._trouble

    # The protocol

    @property
    def closed(self) -> bool:
        """Whether the sandbox accepts no more jobs: it was closed, or has failed permanently."""
        return self._closed or self._over

    def end_session(self, name: str) -> None:
        """End a session and delete its state; an unknown name is ignored."""
        with self._lock:
            if not self.closed and self._dispatcher is not None:
                self._loop.call_soon_threadsafe(self._dispatcher.homes.end, name)

    def _end(self) -> None:
        if self._thread.ident is None:  # it was never started
            self._loop.close()
            return
        with contextlib.suppress(RuntimeError):  # the thread has ended already
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    # Calls

    def _submit(self, job: Job) -> FleetCall:
        return self._submit_many([job])[0]

    def _submit_many(self, jobs: Sequence[Job]) -> Sequence[FleetCall]:
        with self._lock:
            number = self._next_id
            self._next_id += len(jobs)
        calls = [FleetCall(f"{self._client}-{number + place}", job, self._drop) for place, job in enumerate(jobs)]
        for call in calls:
            call.future.add_done_callback(partial(self._forget, call))
        with self._lock:
            self._refuse_if_closed()
            if self._over:
                raise SandboxUnavailableError(
                    f"This sandbox failed and does not accept programs any more: {self._trouble}"
                )
            self._calls.update(calls)
            wake = not self._inbox
            self._inbox += calls
            if wake:
                self._loop.call_soon_threadsafe(self._collect)
        return calls

    def _forget(self, call: FleetCall, _: Future[Outcome]) -> None:
        self._calls.discard(call)

    def _drop(self, pending: Sequence[PendingJob]) -> None:
        unfinished = [
            call for call in pending if isinstance(call, FleetCall) and (call in self._calls or call.future.cancelled())
        ]
        with self._lock:
            if self.closed or not unfinished:
                return
            assert self._dispatcher is not None  # it has accepted these calls
            self._loop.call_soon_threadsafe(self._dispatcher.drop, unfinished)

    # The thread

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # waiting callers must receive any failure
            self._trouble = error
        with self._lock:
            self._over = True
            calls = list(self._calls)
        for call in calls:
            call.lose(
                CLOSED if self._trouble is None else f"The connection to the sandbox servers failed: {self._trouble}"
            )
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        self._ready.set()

    async def _serve(self) -> None:
        import httpx

        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **bearer(self._token)}
        # Proxies from the environment are meant for the internet, not for servers of the local network.
        async with httpx.AsyncClient(
            headers=headers,
            verify=ssl.create_default_context(cafile=self._ca_file),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=3.0),
            trust_env=False,
        ) as http:
            dispatcher = Dispatcher(self.options, self._client)
            try:
                async with self._serving(dispatcher.servers, http):
                    self._dispatcher = dispatcher
                    self._ready.set()
                    await self._stop.wait()
                    await dispatcher.close(_CLOSE_S)
            finally:
                await dispatcher.close(0.0)

    def _collect(self) -> None:
        with self._lock:
            calls, self._inbox = self._inbox, []
        if self._dispatcher is not None:
            self._dispatcher.submit(calls)
