"""The server process: serves one sandbox on one socket, in one event loop, until a signal ends it.

Covered: start, listening socket, graceful shutdown (refuse new and waiting calls, finish calls in flight). Not covered:
several processes; on a machine too large for one process, start several servers and give clients all addresses.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.secret import Secret, secret_of
from rstar2_env.sandbox.providers import make_sandbox
from rstar2_env.sandbox.serve.options import ServeOptions


def serve(
    options: ServeOptions,
    provider: str = "local",
    provider_options: Mapping[str, Any] | None = None,
    *,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve a sandbox over HTTP until SIGTERM or SIGINT. Call this in the main thread.

    Args:
        options: Address, bounds and timeouts of the server.
        provider: Name of the provider that runs the programs.
        provider_options: Options of the provider.
        announce: Called with the address once the server listens.

    Raises:
        MissingExtraError: The extra ``serve`` is not installed.
        ConfigurationError: An option is invalid, or the server cannot listen on the address.
        SandboxUnavailableError: The sandbox cannot start.
    """
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("serve", "The sandbox server") from error
    from rstar2_env.sandbox.serve.service import Service
    from rstar2_env.sandbox.serve.serving import address, configured

    listener = _listen(options)
    try:
        sandbox = make_sandbox(provider, **(provider_options or {}))
    except BaseException:
        listener.close()
        raise
    with sandbox, listener:
        service = Service(sandbox, options, provider)
        config = configured(service)
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            loop = runner.get_loop()
            stopping: list[asyncio.Task[None]] = []

            def drain() -> None:
                if not stopping:
                    print("Stopping.", file=sys.stderr)
                    stopping.append(loop.create_task(service.drain()))

            class Server(uvicorn.Server):
                """A uvicorn server that, on a signal, stops accepting calls at once and finishes running calls."""

                def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                    super().handle_exit(sig, frame)
                    loop.call_soon_threadsafe(drain)

            server = Server(config)
            # uvicorn handles signals only while it serves; then it restores the previous handlers and raises the
            # signals again. They must not end the process before the sandbox is closed, and earlier ones not be lost.
            before = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
            try:
                if announce is not None:
                    announce(address(options, listener))
                runner.run(server.serve(sockets=[listener]))
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)


def read_token(token: str | None, token_file: str | None) -> Secret | None:
    """Return the token from the command line, a file or the environment, in this order; ``None`` without a token.

    Raises:
        ConfigurationError: Both a token and a file were given, or the file cannot be read or is empty.
    """
    if token is not None and token_file is not None:
        raise ConfigurationError("The token is given twice, directly and in a file: omit one of them.")
    if token_file is not None:
        try:
            with open(token_file, encoding="utf-8") as file:
                token = file.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"The token file {token_file!r} cannot be read: {error}") from None
        if not token:
            raise ConfigurationError(f"The token file {token_file!r} is empty: write the token into it.")
    return secret_of(token or os.environ.get("RSTAR2_SANDBOX_TOKEN", "").strip())


def _listen(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host.strip("[]"), options.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigurationError(
            f"The server cannot listen on {options.host}:{options.port}: {error.strerror or error}. Choose "
            "another port or address."
        ) from None
