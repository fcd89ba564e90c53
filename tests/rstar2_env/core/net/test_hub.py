"""Claims about asking the hub: once, shortly, and a silent hub is an answer too."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from small_hub import small_hub

from rstar2_env.core.errors import ServiceError
from rstar2_env.core.net import hub

constants = pytest.importorskip("huggingface_hub.constants")


def test_a_name_that_is_there_gives_no_reason(monkeypatch):
    with small_hub(monkeypatch, "/api/models/owner/name") as asked:
        assert hub.ask_hub("models", "owner/name") is None
    assert asked == ["/api/models/owner/name"]


@pytest.mark.parametrize("answer", [401, 404])
def test_a_name_that_is_not_there_is_asked_for_once(monkeypatch, answer):
    with small_hub(monkeypatch, answer=answer) as asked:
        assert hub.ask_hub("datasets", "owner/nothing") == "the Hugging Face hub has no dataset of that name"
    assert len(asked) == 1


def test_a_hub_with_other_troubles_is_left_to_who_loads(monkeypatch):
    with small_hub(monkeypatch, answer=503):
        assert hub.ask_hub("models", "owner/name") is None


def test_a_hub_that_cannot_be_reached_or_is_silent_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "TIMEOUT_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert "cannot be queried" in hub.ask_hub("models", "owner/name")
        silent.listen()
        began = time.monotonic()
        assert "cannot be queried" in hub.ask_hub("models", "owner/name")
        assert time.monotonic() - began < 10


def test_nobody_is_asked_offline(monkeypatch):
    with small_hub(monkeypatch) as asked:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert "HF_HUB_OFFLINE" in hub.ask_hub("models", "owner/name")
    assert asked == []


@contextmanager
def redirecting_hub() -> Iterator[tuple[str, dict[str, str | None]]]:
    """A hub that sends ``/here`` on to itself, ``/away`` to another host and ``/port`` to another port of its own.

    Gives its address, and the tokens that came, by path.
    """
    tokens: dict[str, str | None] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens[self.path] = self.headers["Authorization"]
            port = self.server.server_address[1]
            away = {
                "/away": f"http://localhost:{port}/elsewhere",
                "/port": f"http://127.0.0.1:{other.server_port}/other",
            }
            to = {"/here": "/arrived", **away}.get(self.path)
            self.send_response(307 if to else 200)
            if to:
                self.send_header("Location", to)
            self.end_headers()
            self.wfile.write(b'{"arrived": true}')

        def log_message(self, *words: object) -> None:
            pass

    server, other = (ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2))
    threads = [threading.Thread(target=one.serve_forever, daemon=True) for one in (server, other)]
    for thread in threads:
        thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", tokens
    finally:
        for one, thread in zip((server, other), threads, strict=True):
            one.shutdown()
            one.server_close()
            thread.join()


def test_a_token_goes_to_the_hub_alone_wherever_that_sends_us_on(monkeypatch):
    with redirecting_hub() as (address, tokens):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        for path in ("/here", "/away", "/port"):
            assert hub.hub_answer(path, "secret") == (200, {"arrived": True})
    own = {"/here", "/arrived", "/away", "/port"}
    assert {path for path, token in tokens.items() if token == "Bearer secret"} == own
    assert tokens["/elsewhere"] is tokens["/other"] is None


def test_what_is_asked_for_before_it_is_loaded_is_asked_for_with_the_token(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with redirecting_hub() as (address, tokens):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        assert hub.ask_hub("models", "owner/private") is None
    assert tokens == {"/api/models/owner/private": "Bearer secret"}


def test_what_is_no_http_is_no_answer(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as garbled:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{garbled.getsockname()[1]}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

        def answer() -> None:
            for _ in range(2):
                connection, _ = garbled.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(b"HTTP/1.1 two hundred\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(ServiceError, match="cannot be reached"):
            hub.hub_answer("/api/whoami-v2", "secret")
        assert "cannot be queried" in str(hub.ask_hub("models", "owner/name"))
        thread.join()
