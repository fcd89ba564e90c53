"""A viewer's server over some runs, asked as a browser or a stranger would."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rstar2_env.view.server import ViewOptions, ViewServer

PAGE = (
    '<!doctype html>\n<html lang="en">\n  <head>\n    <meta charset="utf-8">\n    <link rel="icon" href="icon.svg">\n'
    '    <link rel="stylesheet" href="app.css">\n    <script defer src="app.js"></script>\n  </head>\n'
    '  <body>\n    <div id="app"></div>\n  </body>\n</html>\n'
)


def write_page(folder: Path) -> Path:
    """A page as ``make view`` builds one, with all in its script that could end it."""
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "app.js").write_text("window.x = '</script><!-- <script>'; document.title = /<!--/u.source;\n")
    (folder / "text.js").write_text("window.rstar2Formatter = {}; // </script>\n")
    (folder / "app.css").write_text("body { color: red }\n")
    (folder / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    return folder


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Asker:
    """Asks a server; every request has a connection of its own."""

    def __init__(self, server: ViewServer) -> None:
        self.server = server
        self.port = int(urlsplit(server.address).port or 0)

    def __call__(self, path: str, method: str = "GET", **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=400)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.putrequest(
                method, path, skip_host="Host" in named, skip_accept_encoding="Accept-Encoding" in named
            )
            for name, value in named.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Reply(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        """The answer to a question below ``/api``, which must be there."""
        reply = self(f"/api/{path}")
        assert reply.status == 200, reply.body
        return reply.json

    def until(self, path: str, holds: Callable[[Any], bool], seconds: float = 60.0) -> Any:
        """The answer once something holds of it."""
        end = time.monotonic() + seconds
        while not holds(answer := self.json(path)):
            assert time.monotonic() < end, answer
            time.sleep(0.02)
        return answer

    def read(self, run: str) -> Any:
        """The run, once all of it has been read."""

        def is_read(one: Any) -> bool:
            return one["indexing"] is None and one["searchable"] is None and sum(one["episodes"].values()) > 0

        return self.until(f"runs/{run}", is_read)


@contextmanager
def viewed(*roots: Path, base: Path, options: ViewOptions | None = None) -> Iterator[Asker]:
    """A server over runs, with its index and its page in a folder."""
    server = ViewServer(roots, options, cache=base / "cache", static=write_page(base / "page"))
    with server:
        yield Asker(server)
