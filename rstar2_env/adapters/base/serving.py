"""Serve the HTTP application of an adapter until SIGINT or SIGTERM."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from rstar2_env.adapters.base.own_pages import OwnPages
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.telemetry import recording
from rstar2_env.sandbox.serve.options import is_loopback


def serve_app(
    app: Any, host: str, port: int, *, path: str = "", announce: Callable[[str], None] | None = None, **config: Any
) -> None:
    """Serve an application; refuse requests of foreign web pages; record telemetry if environment variables request it.

    Args:
        app: A Starlette application.
        host: Address to listen on.
        port: Port to listen on; 0 chooses a free port.
        path: Path of the announced URL.
        announce: Called with the server's URL once its socket listens.
        **config: Options of ``uvicorn.Config``.

    Raises:
        ConfigurationError: The server cannot listen on the address, or ``RSTAR2_OTEL`` is invalid.
    """
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigurationError(
            f"The server cannot listen on {host}:{port}: {error}. Choose another port or address."
        ) from error
    with listening:
        if announce is not None:
            shown = f"[{host}]" if ":" in host else host
            announce(f"http://{shown}:{listening.getsockname()[1]}{path}")
        app.add_middleware(OwnPages, loopback=is_loopback(host))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", **config))
        with recording(), _handling_sigterm(server):
            server.run(sockets=[listening])


@contextmanager
def _handling_sigterm(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGTERM stop only the server.

    uvicorn raises the signal again after the server has stopped. Without this handler, the second signal would end the
    process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, server.handle_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
