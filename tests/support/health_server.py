"""A program that says it is healthy: ``health_server.py PORT [CODE]``; with a code, it ends so when it is asked to."""

from __future__ import annotations

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/end":
            os._exit(3)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
