"""``digests_of_files``: digests of the files that a run's options name, such as its environment and its problems.

Not covered: folders (a model), modules that a named file imports, and files of more than ``_MOST_BYTES``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_MOST_BYTES = 1 << 30
"""Maximum size of a file to hash, in bytes; hashing a file of this size takes a few seconds."""
_PIECES = re.compile(r"""[^\s,;=+*()\[\]{}"'`]+""")
_NAME = re.compile(r"(.*?[^/:.]\.[A-Za-z]\w*)(?::.*)?", re.DOTALL)


def file_names(options: Any) -> set[str]:
    """Return everything in the texts of the options that looks like a file's name, whether or not the file exists.

    Args:
        options: Options of a run, as JSON values. A text may contain several names: ``"./mine.py:Mine+a.jsonl"``.
    """
    return _names(piece for text in _texts(options) for piece in _PIECES.findall(text))


def digests_of_files(options: Any) -> dict[str, str]:
    """Return the SHA-256 of each file that options name, by its name; names without a readable file are left out.

    Args:
        options: Options of a run, as JSON values; relative names refer to the current folder.
    """
    found = {}
    whole = _names(_texts(options))  # the name of a file may contain spaces and signs
    for name in sorted(whole | file_names(options)):
        with suppress(OSError, ValueError):  # the text does not name a file
            if (path := Path(name)).is_file() and path.stat().st_size <= _MOST_BYTES:
                with path.open("rb") as stream:
                    found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _names(texts: Iterable[str]) -> set[str]:
    return {match[1] for text in texts if "://" not in text and (match := _NAME.fullmatch(text))}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
