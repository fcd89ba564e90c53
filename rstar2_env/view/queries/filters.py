"""Parses filters and sort orders of episodes from a query, and translates them to SQL.

Every value is passed to SQLite as a bound parameter, and every column name comes from a mapping in this module.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.index.episode_columns import ERRORS, STATUSES, bits_of

FIELDS: Mapping[str, str] = {
    "split": "e.split",
    "step": "e.step",
    "group": "e.grp",
    "member": "e.member",
    "round": "e.round",
    "kept": "e.kept",
    "reason": "e.reason",
    "advantage": "e.advantage",
    "reward": "e.reward",
    "correct": "e.correct",
    "end": "e.end",
    "turns": "e.turns",
    "policy_tokens": "e.tokens",
    "calls": "e.calls",
    "errors": "e.errors",
    "statuses": "e.statuses",
    "injected": "e.injected",
    "last_status": "e.last_status",
    "after_error": "e.after_error",
    "problem_id": "p.name",
    "task": "p.task",
    "source": "e.source",
    "problem_source": "p.source",
    "difficulty": "p.difficulty",
    "seconds": "e.seconds",
    "answer": "e.answer",
    "question": "p.question",
    "version": "e.version",
}
"""SQL column of each field of an episode's row, in the tables ``e`` (episodes) and ``p`` (problems)."""
RANGES = ("step", "reward", "advantage", "turns", "policy_tokens", "calls", "errors", "seconds", "version")
"""Fields that can be filtered by ``min_FIELD`` and ``max_FIELD``."""
SORTS: Mapping[str, str] = {**{name: FIELDS[name] for name in RANGES}, **FIELDS, "problem": "p.name"}
"""SQL column of each field by which the table of episodes can be sorted."""
_TEXTS = ("end", "reason", "after_error", "source", "task", "problem_source", "difficulty", "split")
_NUMBERS = ("group", "member", "round", "turns")
_FLAGS = ("kept", "correct")
_YES, _NO = frozenset({"1", "true", "yes"}), frozenset({"0", "false", "no"})
WORD = re.compile(r'"([^"]*)"?|(\S+)')
"""Pattern of one term of a search: a phrase in quotes, or a word."""
MOST_WORDS = 20


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """A filter of episodes, as SQL.

    Attributes:
        where: SQL condition over the tables ``e`` (episodes), ``f`` (files) and ``p`` (problems).
        values: Values of the condition's parameters.
        q: Text to search for in the conversations; empty for none.
    """

    where: str
    values: tuple[Any, ...]
    q: str = ""


def read_filter(params: Mapping[str, str]) -> EpisodeFilter:
    """Parse the filter in a query's parameters; empty and unrelated parameters are ignored.

    Raises:
        ConfigurationError: A value is invalid.
    """
    parts: list[str] = []
    values: list[Any] = []

    def add(part: str, *bound: Any) -> None:
        parts.append(part)
        values.extend(bound)

    for name, text in params.items():
        if not text:
            continue
        if name in _TEXTS:
            choices = text.split(",")
            add(f"{FIELDS[name]} IN ({','.join('?' * len(choices))})", *choices)
        elif name in _NUMBERS:
            numbers = [_whole(name, part) for part in text.split(",")]
            add(f"{FIELDS[name]} IN ({','.join('?' * len(numbers))})", *numbers)
        elif name in _FLAGS:
            add(f"{FIELDS[name]} = ?", flag(name, text))
        elif name == "step":
            low, high = _steps(text)
            add("e.step BETWEEN ? AND ?", low, high)
        elif name == "problem":
            add("p.name = ?", text)
        elif name == "problem_q":
            like = f"%{_escaped(text)}%"
            add(r"(p.name LIKE ? ESCAPE '\' OR p.question LIKE ? ESCAPE '\')", like, like)
        elif name == "status":
            add("(e.status_bits & ?) != 0", _statuses(text))
        elif name == "last":
            names = _named_statuses(text)
            add(f"e.last_status IN ({','.join('?' * len(names))})", *names)
        elif name == "injected":
            if text in _NO:
                add("e.injected = ''")
            elif text in _YES or text == "any":
                add("e.injected != ''")
            else:
                add("(e.injected_bits & ?) != 0", _statuses(text))
        elif name[:4] in ("min_", "max_") and name[4:] in RANGES:
            add(f"{FIELDS[name[4:]]} {'>=' if name.startswith('min_') else '<='} ?", number_of(name, text))
    return EpisodeFilter(" AND ".join(parts) or "1", tuple(values), params.get("q", "").strip())


def typed_filter(text: str, named: str) -> dict[str, str]:
    """Parse a filter that a user typed as ``NAME=VALUE&NAME=VALUE`` into query parameters.

    Args:
        text: The typed text.
        named: Name of the option in error messages.

    Raises:
        ConfigurationError: The text does not have that form, a filter does not exist, or its value is invalid; the
            message begins with ``named``.
    """
    try:
        params = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text)))
    except ValueError:
        raise ConfigurationError(f"{named} must be NAME=VALUE&NAME=VALUE, not {text!r}.") from None
    if unknown := [name for name in params if name not in known_names()]:
        raise ConfigurationError(
            f"{named} contains the unknown filter {unknown[0]!r}: choose from {', '.join(known_names())}."
        )
    try:
        wanted = read_filter(params)
        if wanted.q:
            words_query(wanted.q)
    except ConfigurationError as error:
        raise ConfigurationError(f"{named}: {error}") from None
    return params


def read_sort(text: str, columns: Mapping[str, str], default: str, unsorted: str = "") -> str:
    """Translate a sort order to SQL: a column name, or ``-NAME`` for descending order; missing values come last.

    Args:
        text: The sort order; the column ``key`` stands for the order of ``default``.
        columns: The columns by name.
        default: SQL columns that decide the order of rows with equal values.
        unsorted: SQL order if ``text`` is empty [default: the order of ``default``].

    Raises:
        ConfigurationError: The column does not exist.
    """
    if not text and unsorted:
        return unsorted
    name = text.removeprefix("-")
    if not name or name == "key":
        return ", ".join(f"{column.strip()} DESC" for column in default.split(",")) if text[:1] == "-" else default
    if name not in columns:
        raise ConfigurationError(f"The list cannot be sorted by {name[:40]!r}: choose from {', '.join(columns)}.")
    return f"{columns[name]} IS NULL, {columns[name]} {'DESC' if text.startswith('-') else 'ASC'}, {default}"


def known_names() -> list[str]:
    """Return the names of all filters."""
    bounds = [f"{end}_{name}" for name in RANGES for end in ("min", "max")]
    return [*_TEXTS, *_NUMBERS, *_FLAGS, "step", "problem", "problem_q", "status", "last", "injected", "q", *bounds]


def words_query(q: str) -> str:
    """Translate a search to FTS5: all words must occur; quotes make phrases, a final ``*`` matches a prefix.

    Raises:
        ConfigurationError: The search does not contain a word.
    """
    parts = []
    for phrase, word in WORD.findall(q):
        text = phrase or word
        if not any(_searchable(letter) for letter in text):
            continue
        text = text.replace("\0", " ")
        end = "*" if word.endswith("*") and any(_searchable(letter) for letter in word[:-1]) else ""
        parts.append('"' + text.removesuffix("*").replace('"', '""') + '"' + end)
    if not parts:
        raise ConfigurationError("The search (q) must contain at least one word: letters or digits.")
    return " AND ".join(parts[:MOST_WORDS])


def _searchable(letter: str) -> bool:
    """Whether the tokenizer of the index keeps a character: letters, numbers, ``_`` and private-use characters."""
    return letter == "_" or unicodedata.category(letter)[0] in "LN" or unicodedata.category(letter) == "Co"


def _whole(name: str, text: str) -> int:
    try:
        found = int(text)
    except ValueError:
        raise ConfigurationError(f"{name} must be a whole number, not {text[:40]!r}.") from None
    if abs(found) >= 2**62:
        raise ConfigurationError(f"{name} must have at most 18 digits, not {len(text.strip('+-'))}.")
    return found


def number_of(name: str, text: str) -> float:
    """Parse the value of a query's parameter as a number.

    Raises:
        ConfigurationError: The value is not a number.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise ConfigurationError(f"{name} must be a number, not {text[:40]!r}.")
    return found


def flag(name: str, text: str) -> int:
    """Parse the value of a query's parameter as a boolean, and return 1 or 0.

    Raises:
        ConfigurationError: The value is not a boolean.
    """
    if text.lower() in _YES:
        return 1
    if text.lower() in _NO:
        return 0
    raise ConfigurationError(f"{name} must be 1 or 0, not {text[:40]!r}.")


def split_of(params: Mapping[str, str], default: str) -> str:
    """Return the split (``train`` or ``eval``) that a query selects; ``default`` if it selects none.

    Raises:
        ConfigurationError: The split is not ``train`` or ``eval``.
    """
    split = params.get("split") or default
    if split not in ("train", "eval"):
        raise ConfigurationError(f"`split` must be train or eval, not {split[:40]!r}.")
    return split


def _steps(text: str) -> tuple[int, int]:
    low, dash, high = text.strip().partition("-")
    if not all(part.strip().isdecimal() or (dash and not part) for part in (low, high if dash else low)):
        raise ConfigurationError(f"step must be a whole number, or a range such as 3-9, not {text[:40]!r}.")
    found = _whole("step", low) if low else 0, _whole("step", high if dash else low) if high or not dash else 2**62
    if found[0] > found[1]:
        raise ConfigurationError(f"step must be a range from the lower to the higher number, not {text[:40]!r}.")
    return found


def _statuses(text: str) -> int:
    return bits_of(_named_statuses(text))


def _named_statuses(text: str) -> list[str]:
    """Split a filter's value at commas into statuses; ``error`` stands for all statuses in ``ERRORS``."""
    names = text.split(",")
    if unknown := [name for name in names if name not in (*STATUSES, "error")]:
        raise ConfigurationError(
            f"The status {unknown[0][:40]!r} does not exist: choose from error, {', '.join(STATUSES)}."
        )
    return [name for name in STATUSES if name in names or ("error" in names and name in ERRORS)]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
