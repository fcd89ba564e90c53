"""The server's application in uvicorn, for a process of its own (``main``) and for an actor of a cluster (``ray``)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import prometheus_client
import uvicorn

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.sandbox.serve.app import build_app
from rstar2_env.sandbox.serve.connections import bounded
from rstar2_env.sandbox.serve.service import Service

_CLOSE_S = 2.0


def configured(service: Service) -> uvicorn.Config:
    """What uvicorn is to serve, and how; loaded.

    Raises:
        ConfigurationError: The certificate or its key cannot be used.
    """
    # Otherwise each counter gets another line with its creation time.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # has no annotations
    options = service.options
    config = uvicorn.Config(
        build_app(service),
        lifespan="off",
        http=bounded(options.connections, options.header_s),
        log_level="warning",
        access_log=False,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        timeout_graceful_shutdown=int(options.drain_s + _CLOSE_S) + 1,
    )
    try:
        config.load()
    except OSError as error:  # TLS errors are subclasses
        raise ConfigurationError(f"The certificate or its key cannot be used: {error}") from None
    return config


class QuietServer(uvicorn.Server):
    """A server inside a program that has signals of its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals as they are."""
        yield
