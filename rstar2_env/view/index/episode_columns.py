"""Extracts the values to index from an episode's line.

Missing and unknown keys are tolerated, since another version of the package may have written the line.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple, overload

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.status import ToolStatus

STATUSES = tuple(str(status) for status in ToolStatus)
"""Names of all tool statuses; the position of a name is the number of its bit in ``status_bits``."""
_BITS = {name: 1 << place for place, name in enumerate(STATUSES)}
ERRORS = frozenset(str(status) for status in ToolStatus if status.is_error)
"""Names of the statuses that count as the policy's errors."""
_VOID = frozenset({"unavailable", "cancelled", "no_text", "cut", "refused"})
"""Values of ``end`` for which an episode is excluded from means (see ``Episode.available``)."""
_DECODER = json.JSONDecoder(parse_constant=lambda name: None)
"""JSON decoder that reads NaN and infinities, which strict JSON does not allow, as null."""
QUESTION = 2000
"""Maximum length of a question in the index, in characters."""
ANSWER = 200
"""Maximum length of an answer in the index, in characters."""

ProblemFacts = tuple[str, str, str, str, str, str | None]
"""The indexed values of an episode's problem: name, task, source, difficulty, question, gold answer."""


class EpisodeFacts(NamedTuple):
    """The indexed values of an episode: the columns of the table ``episodes`` that come from the episode's line."""

    split: str
    step: int
    round: int
    grp: int
    member: int
    kept: int | None
    correct: int
    available: int
    reward: float | None
    advantage: float | None
    turns: int
    tokens: int
    calls: int
    errors: int
    status_bits: int
    injected_bits: int
    seconds: float | None
    version: int
    tags: int
    end: str
    reason: str
    source: str
    statuses: str
    injected: str
    last_status: str
    after_error: str
    answer: str | None


def parse_line(line: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object.

    Raises:
        RecordFormatError: The line is not a JSON object.
    """
    try:
        record = _DECODER.decode(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise RecordFormatError(f"the line is not valid JSON ({error})") from error
    if not isinstance(record, dict):
        raise RecordFormatError("the line is not a JSON object")
    return record


def facts_of(record: Mapping[str, Any], split: str, step: int, line: int) -> EpisodeFacts:
    """Extract the indexed values of an episode from its record.

    Args:
        record: The parsed line.
        split: ``train`` or ``eval``.
        step: Step of the file.
        line: Number of the line, from 0; it becomes the group's number if the record has none.

    Raises:
        RecordFormatError: The record is not an episode.
    """
    check_episode(record)
    calls, faults = _calls(record.get("statuses")), _calls(record.get("injected"))
    group, member = record.get("group", record.get("start")), record.get("member", record.get("sample"))
    if group is None:
        group = record.get("index", line)
    end = _text(record.get("end"))
    answer = record.get("answer")
    return EpisodeFacts(
        split=split,
        step=step,
        round=as_int(record.get("round")),
        grp=as_int(group),
        member=as_int(member),
        kept=None if "kept" not in record else int(bool(record["kept"])),
        correct=int(bool(record.get("correct"))),
        available=int(end not in _VOID),
        reward=as_float(record.get("reward")),
        advantage=as_float(record.get("advantage")),
        turns=as_int(record.get("turns")),
        tokens=as_int(record.get("policy_tokens")),
        calls=calls.counted,
        errors=calls.errors,
        status_bits=calls.bits,
        injected_bits=faults.bits,
        seconds=as_float(record.get("seconds")),
        version=as_int(record.get("policy_version")),
        tags=as_int(record.get("answer_tags")),
        end=end,
        reason=_text(record.get("reason")),
        source=_text(record.get("source")) or "policy",
        statuses=calls.counts,
        injected=faults.counts,
        last_status=calls.last,
        after_error=calls.after_error or (("answered" if end == "answered" else "ended") if calls.errors else ""),
        answer=None if answer is None else _text(answer)[:ANSWER],
    )


def check_episode(record: Mapping[str, Any]) -> None:
    """Raise an error if a record is not an episode.

    Raises:
        RecordFormatError: The record does not contain a list of messages.
    """
    if not isinstance(record.get("messages"), list):
        raise RecordFormatError("it is not an episode: it does not contain a list 'messages'")


def list_field(record: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list from a record; an empty list if the field is missing or is not a list."""
    value = record.get(name)
    return value if isinstance(value, list) else []


def searchable_text(record: Mapping[str, Any]) -> str:
    """Return the text to search in an episode: the problem's id, the conversation, the answer and the gold answer."""
    parts = [_text(record.get("problem_id"))]
    parts += [_text(message.get("content")) for message in _messages(record)]
    parts += [_text(record[name]) for name in ("answer", "gold") if record.get(name) is not None]
    # A NUL character would end the text in SQLite.
    return clean("\n".join(parts))


def question_of(record: Mapping[str, Any]) -> str:
    """Return the first user message of an episode."""
    return next((_text(message.get("content")) for message in _messages(record) if message.get("role") == "user"), "")


def clean(text: str) -> str:
    """Replace the characters that SQLite or UTF-8 cannot store: NUL characters and lone surrogates."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "�")


def _messages(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [message for message in list_field(record, "messages") if isinstance(message, dict)]


def problem_of(record: Mapping[str, Any]) -> ProblemFacts:
    """Extract an episode's problem from its record; a problem without an id is named by a digest of its question."""
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


class _Calls(NamedTuple):
    """A summary of a list of statuses.

    Attributes:
        counts: Number of calls by status, as JSON; empty without calls.
        counted: Number of calls whose status is not ``unavailable``.
        errors: Number of calls whose status is one of ``ERRORS``.
        bits: Bit mask of the statuses that occur; see ``STATUSES``.
        last: The last status.
        after_error: Whether the call after the first failed one worked (``ok``) or failed too (``failed``); empty if
            there is no such call.
    """

    counts: str = ""
    counted: int = 0
    errors: int = 0
    bits: int = 0
    last: str = ""
    after_error: str = ""


def _calls(value: Any) -> _Calls:
    if not isinstance(value, list) or not value:
        return _Calls()
    return _summarize_statuses(tuple(_text(status)[:40] for status in value))


@functools.lru_cache(maxsize=4096)
def _summarize_statuses(names: tuple[str, ...]) -> _Calls:
    counts = Counter(names)
    own = [name for name in names if name != "unavailable"]
    first = next((at for at, name in enumerate(own) if name in ERRORS), len(own))
    following = own[first + 1 : first + 2]
    return _Calls(
        counts=json.dumps(counts),
        counted=len(own),
        errors=sum(count for name, count in counts.items() if name in ERRORS),
        bits=_bits(counts),
        last=names[-1],
        after_error="" if not following else "failed" if following[0] in ERRORS else "ok",
    )


def _bits(counts: Mapping[str, int]) -> int:
    bits = 0
    for name in counts:
        bits |= _BITS.get(name, 0)
    return bits


def bits_of(names: list[str]) -> int:
    """Return status names as a bit mask, in the order of ``STATUSES``; unknown names are ignored."""
    return _bits(dict.fromkeys(names, 1))


def _text(value: Any) -> str:
    if type(value) is str and value.isascii() and "\0" not in value:
        return value  # the common case
    if value is None:
        return ""
    return clean(value if isinstance(value, str) else str(value))


@overload
def as_int(value: Any, otherwise: int = 0) -> int: ...
@overload
def as_int(value: Any, otherwise: None) -> int | None: ...
def as_int(value: Any, otherwise: int | None = 0) -> int | None:
    """Convert a value from a file to an integer that the index can store.

    Args:
        value: Value in the file: an integer of any size, or a float.
        otherwise: Result for values that are not numbers or are out of range.
    """
    # Integers are compared as they are: ``math.isfinite`` raises for an integer of 400 digits.
    return int(value) if isinstance(value, (int, float)) and abs(value) < 2**62 else otherwise


def as_float(value: Any) -> float | None:
    """Convert a value from a file to a float; ``None`` if it is not a number or not finite."""
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e300 else None
