"""Configures uvicorn for the sandbox server, in its own process (``main``) or in a Ray actor (``ray``)."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import prometheus_client
import uvicorn

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.sandbox.serve.app import build_app
from rstar2_env.sandbox.serve.connections import bounded
from rstar2_env.sandbox.serve.options import ServeOptions
from rstar2_env.sandbox.serve.service import Service

_CLOSE_S = 2.0


def configured(service: Service) -> uvicorn.Config:
    """Create and load uvicorn's configuration for a service.

    Raises:
        ConfigurationError: The certificate or its key cannot be used.
    """
    # Otherwise each counter gets an additional line with its creation time.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # has no annotations
    options = service.options
    config = uvicorn.Config(
        build_app(service),
        lifespan="off",
        http=bounded(options.connections, options.header_timeout_s),
        ws="none",  # the application has no websockets, and the guard checks only HTTP requests
        log_level="warning",
        access_log=False,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        timeout_graceful_shutdown=int(options.drain_timeout_s + _CLOSE_S) + 1,
    )
    try:
        config.load()
    except OSError as error:  # TLS errors are subclasses
        raise ConfigurationError(f"The TLS certificate or its private key cannot be used: {error}") from None
    return config


def address(options: ServeOptions, listener: socket.socket) -> str:
    """Return the URL under which clients reach the server."""
    scheme = "https" if options.tls_cert else "http"
    host = f"[{options.host.strip('[]')}]" if ":" in options.host else options.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


class QuietServer(uvicorn.Server):
    """A uvicorn server that does not install signal handlers, since the program around it handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing, instead of installing signal handlers within the ``with`` block."""
        yield
