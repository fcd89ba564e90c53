"""A search without FTS5: reads the episodes' lines from their files and looks for the words in them, as FTS5 would."""

from __future__ import annotations

import re
import sqlite3
import time
import unicodedata
from collections.abc import Sequence

from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.facts import parsed, words_of
from rstar2_env.view.index.growing import grown
from rstar2_env.view.queries.filters import WORD

MOST_S = 60.0
"""Seconds after which a search is given up."""
_TOKEN, _ACCENT = re.compile(r"[\w\ue000-\uf8ff]+"), re.compile(r"[\u0300-\u036f]")


def scanned(index: RunIndex, db: sqlite3.Connection, numbers: Sequence[int], q: str) -> list[int]:
    """Those of some episodes whose text holds all words, whatever their case and accents.

    Raises:
        ConfigurationError: It takes too long.
    """
    parts = [(_tokens(phrase or word), word.endswith("*")) for phrase, word in WORD.findall(q)]
    words = [text[:-1] if begins else text for text, begins in parts if len(text) > 1]
    wanted, found, until = set(numbers), set(), time.monotonic() + MOST_S
    for number, name in db.execute("SELECT id, name FROM files WHERE what = 'episodes'").fetchall():
        places = {
            (start, at): one
            for one, start, at in db.execute("SELECT id, start, at FROM episodes WHERE file = ?", (number,))
            if one in wanted
        }
        if not places:
            continue
        if time.monotonic() > until:
            raise ConfigurationError("The search takes too long without FTS5: narrow it down with a filter first.")
        path = index.run if index.run.is_file() else index.run / name
        try:
            for piece in grown(path, 0):
                for place, line in piece.lines:
                    one = places.get((place.start, place.at))
                    if one is not None and line is not None and _holds(line, words):
                        found.add(one)
        except OSError:
            continue
    return [number for number in numbers if number in found]


def _holds(line: bytes, words: Sequence[str]) -> bool:
    try:
        text = _tokens(words_of(parsed(line)))
    except RecordFormatError:
        return False
    return all(word in text for word in words)


def _tokens(text: str) -> str:
    """The words of a text, as the tokenizer of the index makes them, each between two zeros."""
    if not text.isascii():
        text = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    return f"\0{''.join(word + chr(0) for word in _TOKEN.findall(text.casefold()))}"
