"""Read tool calls written as JSON between ``<tool_call>`` and ``</tool_call>``, well-formed or not.

Covered: every call in a turn, strict JSON, messages that explain how to correct a call, time linear in the length of
the text. Not covered: whether the tool exists and whether the arguments fit it (the tool chain checks both).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import without_spans
from rstar2_env.tools.base import ToolCall

CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"

_EXAMPLE = '{"name": "...", "arguments": {...}}'
_UNCLOSED = f"The tool call was not closed: {CALL_CLOSE} is missing. Nothing was run."
_SPACE = re.compile(r"\s*")
_MAX_DIGITS = 4000
_WINDOW = 512
_LONGEST_WORD = 16
"""Number of characters at the end of a decoded part of a turn. An error among them may come from a word that is cut off
there, such as ``-Infinity``."""
_UNTERMINATED = "Unterminated string starting at"
_HINTS = {
    "Invalid control character at": r"a line break inside a string is written \n",
    "Invalid \\escape": r"a backslash inside a string is written \\",
    _UNTERMINATED: r"a quotation mark inside a string is written \"",
}


def read_calls(turn: str) -> list[ToolCall]:
    """Return every call in the turn, in order.

    A call ends at the end of its JSON, so a program may contain the closing tag in a string. A call that does not parse
    ends at the next closing tag, or at the turn's end. If only the closing tag is missing, the call ends at the opening
    tag of the next call.
    """
    return [call for call, _, _ in _located_calls(turn)]


def outside_calls(turn: str) -> str:
    """Return the turn without its calls, since an answer in a program is not an answer of the policy."""
    return without_spans(turn, ((start, end) for _, start, end in _located_calls(turn)))


def _located_calls(turn: str) -> Iterator[tuple[ToolCall, int, int]]:
    """Iterate over the calls of a turn, each with its start and its end."""
    start = turn.find(CALL_OPEN)
    while start >= 0:
        call, end = _read_call(turn, start + len(CALL_OPEN))
        yield call, start, end
        start = turn.find(CALL_OPEN, end)


def _read_call(turn: str, start: int) -> tuple[ToolCall, int]:
    """Read the call whose body starts at ``start``; return the call and the position after it."""
    body_at = _after_space(turn, start)
    try:
        body, end = _decode(turn, body_at)
    except json.JSONDecodeError as error:
        fault = _explain(error)
    except RecursionError:
        fault = "it is nested too deeply"
    except ValueError as error:
        fault = str(error)
    else:
        after = _after_space(turn, end)
        if turn.startswith(CALL_CLOSE, after):
            return _checked(body), after + len(CALL_CLOSE)
        if turn.startswith(CALL_OPEN, after):
            return ToolCall("", problem=(ToolStatus.MALFORMED, _UNCLOSED)), after
        fault = f"something else follows the JSON value at character {end - body_at}"
    close = turn.find(CALL_CLOSE, start)
    if close < 0:
        return ToolCall("", problem=(ToolStatus.MALFORMED, _UNCLOSED)), len(turn)
    message = f"The tool call is not valid JSON: {fault}. Expected {_EXAMPLE}. Nothing was run."
    return ToolCall("", problem=(ToolStatus.MALFORMED, message)), close + len(CALL_CLOSE)


def _checked(body: Any) -> ToolCall:
    if not isinstance(body, dict) or not isinstance(body.get("name"), str):
        message = f'The tool call must be a JSON object with a string under "name": {_EXAMPLE}. Nothing was run.'
        return ToolCall("", problem=(ToolStatus.MALFORMED, message))
    arguments = body.get("arguments")
    if not isinstance(arguments, dict):
        message = f'The tool call must have a JSON object under "arguments": {_EXAMPLE}. Nothing was run.'
        return ToolCall(body["name"], problem=(ToolStatus.INVALID_ARGUMENTS, message))
    return ToolCall(body["name"], arguments)


def _explain(error: json.JSONDecodeError) -> str:
    what = error.msg.strip().removesuffix(":")
    hint = _HINTS.get(what)
    place = what.removesuffix(" at").removesuffix(" starting")
    return f"{place} at character {error.pos}{f' ({hint})' if hint else ''}"


def _decode(turn: str, start: int) -> tuple[Any, int]:
    """Decode the JSON value at ``start``; return the value and the position after it.

    For each error, ``raw_decode`` counts lines from the start of its text, so a turn with many broken calls would take
    quadratic time. Therefore ``raw_decode`` receives only a window of the turn. The window is enlarged as long as its
    end may be the cause of the error. The ``pos`` of a raised error counts from ``start``.
    """
    size = _WINDOW
    while True:
        window = turn[start : start + size]
        cut = start + size < len(turn)
        try:
            value, length = _DECODER.raw_decode(window)
            if not cut or length < len(window) - _LONGEST_WORD:
                return value, start + length
        except json.JSONDecodeError as error:
            if not cut or (error.pos < len(window) - _LONGEST_WORD and error.msg != _UNTERMINATED):
                raise
        size *= 2


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # JSON does not define which of several equal keys counts, and running the wrong code is worse than a message.
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twice[:40]!r} occurs more than once")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS} digits")
    return int(digits)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
