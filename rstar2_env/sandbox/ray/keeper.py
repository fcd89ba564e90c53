"""``Keeper``: the Ray actor of one node, which runs a local sandbox behind a server (``rstar2_env.sandbox.serve``).

Ray starts the actor, reports whether it is alive, and kills it; calls go directly to the server. The server listens on
the address of the node at a free port, and requires the token of the sandbox that started it.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.secret import Secret
from rstar2_env.sandbox.limits import Limits
from rstar2_env.sandbox.local.provider import LocalSandbox
from rstar2_env.sandbox.serve.options import ServeOptions

_NO_BOUND = Limits(wall_s=1e9, cpu_s=1e9, memory_mb=1 << 24, processes=1 << 20, output_bytes=1 << 30, file_mb=1 << 24)
"""Limits so high that they have no effect: the server's only client is the sandbox that started it, and may set any
limits."""
_BEATS = 10
_LONGEST_BEAT_S = 2.0
_REMEMBERED_S = 180.0


@dataclass(frozen=True, slots=True)
class StartResult:
    """Result of starting the sandbox server of a node.

    Attributes:
        url: Address of the server.
        error: Reason why the server did not start, or ``None``.
        mistaken: Whether the server did not start because the options are invalid.
    """

    url: str = ""
    error: str | None = None
    mistaken: bool = False


class Keeper:
    """Runs the local sandbox of one node and its server, as an asynchronous Ray actor.

    Args:
        address: Address of the node, on which the server listens.
        options: Options of the local sandbox.
        token: Token that clients must send.
        stall_timeout_s: Seconds without an answer after which the client treats the server as stuck.
    """

    def __init__(self, address: str, options: dict[str, Any], token: Secret, stall_timeout_s: float) -> None:
        self._address, self._options = address, options
        self._serve_options = ServeOptions(
            host=address,
            port=0,
            token=token,
            max_limits=_NO_BOUND,
            max_request_mb=1024,
            drain_timeout_s=0,
            beat_s=min(_LONGEST_BEAT_S, stall_timeout_s / _BEATS),
            remember_s=max(_REMEMBERED_S, 2 * stall_timeout_s),
        )
        self._sandbox: LocalSandbox | None = None
        self._service: Any = None
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> StartResult:
        """Start the sandbox and its server. A failure is returned, not raised, so that the caller can name the node."""
        try:
            self._sandbox = await asyncio.to_thread(LocalSandbox, **self._options)
            return StartResult(self._listen(self._sandbox))
        except (Rstar2Error, ImportError, OSError) as error:
            return StartResult(error=str(error), mistaken=isinstance(error, ConfigurationError))

    async def ping(self) -> None:
        """Do nothing: an answer shows that the actor is alive."""

    async def stop(self) -> None:
        """End every program, the server and the sandbox."""
        if self._serving is not None:
            await self._service.drain()
            self._server.should_exit = True
            await asyncio.wait([self._serving], timeout=_LONGEST_BEAT_S)
        if self._sandbox is not None:
            await asyncio.to_thread(self._sandbox.close)

    def _listen(self, sandbox: LocalSandbox) -> str:
        from rstar2_env.sandbox.serve.service import Service
        from rstar2_env.sandbox.serve.serving import QuietServer, address, configured

        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        listener = socket.create_server((self._address, 0), family=family, backlog=2048)
        self._service = Service(sandbox, self._serve_options)
        self._server = QuietServer(configured(self._service))
        self._serving = asyncio.get_running_loop().create_task(self._server.serve(sockets=[listener]))
        return address(self._serve_options, listener)
