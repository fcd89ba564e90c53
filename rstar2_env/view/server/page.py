"""``PageFiles``: the files of the viewer's page, read once and served by name; a request's path is never opened."""

from __future__ import annotations

import hashlib
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
        self._files: dict[str, tuple[bytes, dict[str, str]]] = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in _TYPES:
                data = path.read_bytes()
                tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
                headers = {"Cache-Control": "no-cache", "ETag": tag, "Content-Type": _TYPES[path.suffix]}
                self._files[path.relative_to(folder).as_posix()] = data, headers

    def respond(self, request: Request) -> Response:
        """Return a file, or status 304 if the browser has the current version."""
        # The path is only a key of the table; it never reaches the file system.
        file = self._files.get(request.scope["path"].removeprefix("/") or INDEX)
        if file is None:
            return JSONResponse({"error": "Not found."}, 404)
        data, headers = file
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers)
