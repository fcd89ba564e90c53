"""``PageFiles``: the files of the viewer's page, read once and served by name; no path from a request is ever opened.

Large files are compressed once, since compression for each request would take longer than the rest of the response.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.built_page import FOLDER, INDEX, not_built

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}


_ZIPPED = 4096
"""Size in bytes of the smallest file that is compressed."""


@dataclass(frozen=True, slots=True)
class _PageFile:
    data: bytes
    zipped: bytes | None
    headers: dict[str, str]


class PageFiles:
    """The files of the viewer's page, in memory.

    Args:
        folder: Folder of the built page.

    Raises:
        ConfigurationError: The page has not been built.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        if not (folder / INDEX).is_file():
            raise ConfigurationError(not_built(folder / INDEX))
        self._files: dict[str, _PageFile] = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in _TYPES:
                data = path.read_bytes()
                tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
                headers = {"Cache-Control": "no-cache", "ETag": tag, "Content-Type": _TYPES[path.suffix]}
                zipped = gzip.compress(data, 6, mtime=0) if len(data) >= _ZIPPED else None
                self._files[path.relative_to(folder).as_posix()] = _PageFile(data, zipped, headers)

    def respond(self, request: Request) -> Response:
        """Return a file, or status 304 if the browser has the current version."""
        # The path is only a key of the table; it never reaches the file system.
        file = self._files.get(request.scope["path"].removeprefix("/") or INDEX)
        if file is None:
            return JSONResponse({"error": "Not found."}, 404)
        if request.headers.get("if-none-match") == file.headers["ETag"]:
            return Response(status_code=304, headers=file.headers)
        if file.zipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
            encoded = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
            return Response(file.zipped, headers=file.headers | encoded)
        return Response(file.data, headers=file.headers)
