"""A Hugging Face hub of a few names, on loopback: it answers what it is asked, and counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@contextmanager
def small_hub(monkeypatch: pytest.MonkeyPatch, *known: str, answer: int = 401) -> Iterator[list[str]]:
    """Stand in for the hub; gives the paths that were asked for.

    Args:
        monkeypatch: Points huggingface_hub at it.
        *known: Paths that it knows ("/api/models/owner/name").
        answer: The status for all others.
    """
    from huggingface_hub import constants

    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path in known else answer)
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
