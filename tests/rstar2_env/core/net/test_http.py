"""The HTTP client keeps connections, but none so long that a server may be about to close it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rstar2_env.core.net import http
from rstar2_env.core.net.http import HttpClient


@pytest.fixture
def asked() -> Iterator[tuple[str, list[int]]]:
    """A server's address, and the port at the other end of the connection of every request to it."""
    ports: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            ports.append(self.client_address[1])
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", ports
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("idle_s", "connections"), [(60.0, 1), (0.05, 2)], ids=["soon", "late"])
def test_a_connection_is_used_again_unless_it_was_idle_for_too_long(
    idle_s: float, connections: int, asked: tuple[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_IDLE_S", idle_s)
    address, ports = asked
    client = HttpClient()
    try:
        for _ in range(2):
            client.run_now(client.ask("GET", address, "/"))
            time.sleep(0.2)
    finally:
        client.close()
    assert len(ports) == 2
    assert len(set(ports)) == connections


def test_an_idle_connection_is_given_up_before_uvicorn_closes_it() -> None:
    uvicorn = pytest.importorskip("uvicorn", reason="servers need the extra 'serve'")
    assert uvicorn.Config("app").timeout_keep_alive >= 2 * http._IDLE_S
