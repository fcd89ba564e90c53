"""What the index keeps of an episode: read from its line leniently, so that files of other versions show too."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.status import ToolStatus

STATUSES = tuple(str(status) for status in ToolStatus)
"""Their places are the bits of ``status_bits``."""
_BITS = {name: 1 << place for place, name in enumerate(STATUSES)}
_ERRORS = frozenset(str(status) for status in ToolStatus if status.is_error)
_VOID = frozenset({"unavailable", "cancelled", "no_text", "cut", "refused"})
"""Ends of episodes that count in no mean, as ``Episode.available`` says."""
_DECODER = json.JSONDecoder(parse_constant=lambda name: None)
"""Reads numbers that are not finite, which strict JSON has not, as null."""
QUESTION = 2000
"""Characters of a question that are kept."""
ANSWER = 200

COLUMNS = (
    "split",
    "step",
    "round",
    "grp",
    "member",
    "kept",
    "correct",
    "available",
    "reward",
    "advantage",
    "turns",
    "tokens",
    "calls",
    "errors",
    "status_bits",
    "injected_bits",
    "seconds",
    "version",
    "tags",
    "end",
    "reason",
    "source",
    "statuses",
    "injected",
    "answer",
)
"""Columns of the table ``episodes`` that a line fills, in the order of ``Facts.values``."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the index keeps of an episode.

    Attributes:
        values: By the order of ``COLUMNS``.
        problem: Name, task, source, difficulty, question and gold answer of its problem.
    """

    values: tuple[Any, ...]
    problem: tuple[str, str, str, str, str, str | None]


def parsed(line: bytes) -> dict[str, Any]:
    """A line as JSON.

    Raises:
        RecordFormatError: It is no JSON object.
    """
    try:
        record = _DECODER.decode(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise RecordFormatError(f"it is not JSON ({error})") from error
    if not isinstance(record, dict):
        raise RecordFormatError("it is not a JSON object")
    return record


def facts_of(record: Mapping[str, Any], split: str, step: int, line: int) -> Facts:
    """What the index keeps of an episode.

    Args:
        record: The line.
        split: ``train`` or ``eval``.
        step: The step of its file.
        line: Its number in the file, for an episode that has none of its own.

    Raises:
        RecordFormatError: It is no episode.
    """
    check_episode(record)
    statuses, counted, errors, status_bits = _calls(record.get("statuses"))
    injected, _, _, injected_bits = _calls(record.get("injected"))
    group, member = record.get("group", record.get("start")), record.get("member", record.get("sample"))
    if group is None:
        group = record.get("index", line)
    end = _text(record.get("end"))
    answer = record.get("answer")
    values = (
        split,
        step,
        whole(record.get("round")),
        whole(group),
        whole(member),
        None if "kept" not in record else int(bool(record["kept"])),
        int(bool(record.get("correct"))),
        int(end not in _VOID),
        real(record.get("reward")),
        real(record.get("advantage")),
        whole(record.get("turns")),
        whole(record.get("policy_tokens")),
        counted,
        errors,
        status_bits,
        injected_bits,
        real(record.get("seconds")),
        whole(record.get("policy_version")),
        whole(record.get("answer_tags")),
        end,
        _text(record.get("reason")),
        _text(record.get("source")) or "policy",
        statuses,
        injected,
        None if answer is None else _text(answer)[:ANSWER],
    )
    return Facts(values, _problem(record))


def check_episode(record: Mapping[str, Any]) -> None:
    """Reject a record that is no episode.

    Raises:
        RecordFormatError: It has no list of messages.
    """
    if not isinstance(record.get("messages"), list):
        raise RecordFormatError("it is no episode: it has no list 'messages'")


def list_in(record: Mapping[str, Any], name: str) -> list[Any]:
    """A list of a record; empty where there is none, or something else in its place."""
    value = record.get(name)
    return value if isinstance(value, list) else []


def words_of(record: Mapping[str, Any]) -> str:
    """The text that a search looks through: the problem's id, the conversation, the answer and the gold answer."""
    parts = [_text(record.get("problem_id"))]
    parts += [_text(message.get("content")) for message in _messages(record)]
    parts += [_text(record[name]) for name in ("answer", "gold") if record.get(name) is not None]
    # A character NUL would end the text for SQLite.
    return clean("\n".join(parts))


def question_of(record: Mapping[str, Any]) -> str:
    """The first message of the user."""
    return next((_text(message.get("content")) for message in _messages(record) if message.get("role") == "user"), "")


def clean(text: str) -> str:
    """Text as SQLite and UTF-8 can hold it: without NUL and lone surrogates."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "�")


def _messages(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [message for message in list_in(record, "messages") if isinstance(message, dict)]


def _problem(record: Mapping[str, Any]) -> tuple[str, str, str, str, str, str | None]:
    question = clean(question_of(record)[:QUESTION])
    name = _text(record.get("problem_id"))
    if not name:
        name = f"text-{hashlib.sha256(question.encode()).hexdigest()[:12]}"
    gold = record.get("gold")
    return (
        name,
        _text(record.get("task")),
        _text(record.get("problem_source")),
        _text(record.get("difficulty")),
        question,
        None if gold is None else _text(gold),
    )


def _calls(value: Any) -> tuple[str, int, int, int]:
    """Counts by name as JSON, calls that count, errors and bits of a list of statuses."""
    if not isinstance(value, list) or not value:
        return "", 0, 0, 0
    return _of_statuses(tuple(_text(one)[:40] for one in value))


@functools.lru_cache(maxsize=4096)
def _of_statuses(names: tuple[str, ...]) -> tuple[str, int, int, int]:
    counts = Counter(names)
    counted = sum(count for name, count in counts.items() if name != "unavailable")
    errors = sum(count for name, count in counts.items() if name in _ERRORS)
    return json.dumps(counts), counted, errors, _bits(counts)


def _bits(counts: Mapping[str, int]) -> int:
    bits = 0
    for name in counts:
        bits |= _BITS.get(name, 0)
    return bits


def bits_of(names: list[str]) -> int:
    """The bits of statuses by their names; unknown names have none."""
    return _bits(dict.fromkeys(names, 1))


ERROR_BITS = bits_of(list(_ERRORS))


def _text(value: Any) -> str:
    if type(value) is str and value.isascii() and "\0" not in value:
        return value  # nearly always
    if value is None:
        return ""
    return clean(value if isinstance(value, str) else str(value))


@overload
def whole(value: Any, otherwise: int = 0) -> int: ...
@overload
def whole(value: Any, otherwise: None) -> int | None: ...
def whole(value: Any, otherwise: int | None = 0) -> int | None:
    """A number of a file as a whole one that the index can hold.

    Args:
        value: As the file has it: an integer of any size, or a float.
        otherwise: What stands for what is no number, or is out of range.
    """
    # An integer is compared as it is: one of 400 digits has no float, so that ``math.isfinite`` raises.
    return int(value) if isinstance(value, (int, float)) and abs(value) < 2**62 else otherwise


def real(value: Any) -> float | None:
    """A number of a file as a float; ``None`` for what is none, or is not finite as one."""
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e300 else None
