"""Searches the files of episodes for words if SQLite does not have FTS5; the results equal the results of FTS5."""

from __future__ import annotations

import re
import sqlite3
import time
import unicodedata
from collections.abc import Sequence

from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.episode_columns import parse_line, searchable_text
from rstar2_env.view.index.line_batches import read_batches
from rstar2_env.view.queries.filters import WORD

MOST_S = 60.0
"""Maximum time of a search, in seconds."""
_TOKEN, _ACCENT = re.compile(r"[\w\ue000-\uf8ff]+"), re.compile(r"[\u0300-\u036f]")


def scan_for_words(index: RunIndex, db: sqlite3.Connection, numbers: Sequence[int], q: str) -> list[int]:
    """Return the episodes among ``numbers`` whose text contains all words of ``q``, ignoring case and accents.

    Raises:
        ConfigurationError: The search exceeds its time limit.
    """
    parts = [(_tokens(phrase or word), word.endswith("*")) for phrase, word in WORD.findall(q)]
    words = [text[:-1] if begins else text for text, begins in parts if len(text) > 1]
    wanted, found, until = set(numbers), set(), time.monotonic() + MOST_S
    for number, name in db.execute("SELECT id, name FROM files WHERE what = 'episodes'").fetchall():
        places = {
            (start, at): id_
            for id_, start, at in db.execute("SELECT id, start, at FROM episodes WHERE file = ?", (number,))
            if id_ in wanted
        }
        if not places:
            continue
        if time.monotonic() > until:
            raise ConfigurationError(
                f"The search took more than {MOST_S:g} s, because this Python's SQLite was built without "
                "full-text search (FTS5): add a filter."
            )
        path = index.run if index.run.is_file() else index.run / name
        try:
            for piece in read_batches(path, 0):
                for place, line in piece.lines:
                    id_ = places.get((place.start, place.at))
                    if id_ is not None and line is not None and _contains(line, words):
                        found.add(id_)
        except OSError:
            continue
    return [number for number in numbers if number in found]


def _contains(line: bytes, words: Sequence[str]) -> bool:
    try:
        text = _tokens(searchable_text(parse_line(line)))
    except RecordFormatError:
        return False
    return all(word in text for word in words)


def _tokens(text: str) -> str:
    """Tokenize a text as the index does; return the words, with a NUL character before and after each."""
    if not text.isascii():
        text = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    return f"\0{''.join(word + chr(0) for word in _TOKEN.findall(text.casefold()))}"
