"""A real HTTP server on loopback that answers as a list says: for what clients do when things go wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    body: Any
    headers: Mapping[str, str]


Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]] | None
"""Status, JSON, and further headers; ``None`` drops the connection."""


@dataclass
class FlakyServer:
    """What it was asked, and where it is."""

    address: str
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def flaky(answer: Callable[[Asked, int], Answer], host: str = "127.0.0.1") -> Iterator[FlakyServer]:
    """Serve; ``answer`` is given each request and how many came before it."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            asked = Asked(self.command, self.path, body, dict(self.headers))
            with lock:
                number = len(server.asked)
                server.asked.append(asked)
            found = answer(asked, number)
            if found is None:
                self.close_connection = True
                self.connection.close()
                return
            status, data, *more = found
            text = data if isinstance(data, str) else json.dumps(data)
            self.send_response(status)
            headers = {"content-type": "text/plain" if isinstance(data, str) else "application/json"}
            for name, value in {**headers, **(more[0] if more else {})}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = _serve  # the names that http.server calls

    http = ThreadingHTTPServer((host, 0), Handler)
    http.daemon_threads = True
    server = FlakyServer(f"http://{host}:{http.server_address[1]}")
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
