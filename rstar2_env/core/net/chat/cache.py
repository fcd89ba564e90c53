"""A cache of an endpoint's answers on disk, so that a repeated request costs neither money nor time."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError


class ChatCache:
    """Stores the answer to each request in an SQLite file, which threads and processes can share.

    Args:
        path: The file; it and its folder are created.

    Raises:
        ConfigurationError: The file cannot be written, or is not a cache of replies.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as connection, connection:
                connection.execute("CREATE TABLE IF NOT EXISTS answers (request TEXT PRIMARY KEY, answer TEXT)")
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(
                f"The file {path} cannot be used as a cache of a model's replies: {error}.", option="cache"
            ) from error

    def get(self, request: str) -> Any:
        """Return the answer to a request, by its ``digest``; ``None`` if there is none."""
        with self._lock, closing(self._open()) as connection:
            row = connection.execute("SELECT answer FROM answers WHERE request = ?", (request,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, request: str, answer: Any) -> None:
        """Store the answer to a request, by its ``digest``."""
        with self._lock, closing(self._open()) as connection, connection:
            connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (request, json.dumps(answer)))

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(str(self._path), timeout=30.0)


def digest(url: str, body: Mapping[str, Any], sample: Any) -> str:
    """Return a digest that identifies a request.

    Args:
        url: Address of the endpoint.
        body: Body of the request.
        sample: Value that makes equal requests distinct, so that each gets its own reply.
    """
    text = json.dumps([url, body, sample], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
