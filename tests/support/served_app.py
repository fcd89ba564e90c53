"""Serve an ASGI application on loopback, in a thread, for tests of bridges whose packages install uvicorn."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
from waiting import wait_for


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application until the block ends; yields its address."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        listening.close()
