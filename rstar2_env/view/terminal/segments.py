"""Splits a message into segments by the markup of the dialects, for display only: text, calls, code, answers, results.

The page splits messages in the same way (``pages/episode/segments.ts``); the page and this module read the markup from
``view/words``, and pass the tests in ``web/tests/segments.json``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from rstar2_env.view.words import words

_FENCE = re.compile(r"^([\w+-]*)[ \t]*\n?([\s\S]*)$")


@dataclass(frozen=True, slots=True)
class MessageSegment:
    """A part of a message.

    Attributes:
        kind: ``text``, ``call``, ``code``, ``think``, ``answer`` or ``output``.
        raw: Original text, including the markup.
        text: Text inside the markup.
        language: Language of a call or of code.
        name: For a call, the name of the tool.
        more: For a call with code, its other arguments as JSON.
    """

    kind: str
    raw: str
    text: str
    language: str = ""
    name: str = ""
    more: str = ""


def segments(text: str, role: str) -> list[MessageSegment]:
    """Split a message into consecutive segments; white space between two segments is dropped.

    Args:
        text: The message.
        role: Role of the message's author.
    """
    marks = words()["segments"]["policy" if role == "assistant" else "shown"]
    found: list[MessageSegment] = []
    open_marks = list(marks)
    start = 0
    # Next position of each mark, so that a text with many unclosed marks is scanned only once.
    near = [text.find(mark["open"]) for mark in marks]
    while open_marks:
        for at, mark in enumerate(marks):
            if 0 <= near[at] < start:
                near[at] = text.find(mark["open"], start)
        begin, best = min(
            ((near[at], at) for at, mark in enumerate(marks) if mark in open_marks and near[at] >= 0), default=(-1, -1)
        )
        if begin < 0:
            break
        mark = marks[best]
        inside = begin + len(mark["open"])
        stop = text.find(mark["close"], inside)
        if stop < 0:
            open_marks.remove(mark)
            continue
        end = stop + len(mark["close"])
        found += _text(text[start:begin])
        found.append(_marked(mark["kind"], text[begin:end], text[inside:stop]))
        start = end
    return [*found, *_text(text[start:])]


def _text(raw: str) -> list[MessageSegment]:
    return [MessageSegment("text", raw, raw)] if raw.strip() else []


def _marked(kind: str, raw: str, inside: str) -> MessageSegment:
    segment = MessageSegment(kind, raw, _trimmed(inside))
    if kind == "code" and (fence := _FENCE.match(inside)):
        return replace(segment, language=fence[1].lower() or "text", text=_trimmed(fence[2]))
    return _call(segment) if kind == "call" else segment


def _call(segment: MessageSegment) -> MessageSegment:
    """Extract the code from the JSON of a call. A call that is malformed or nested too deeply is left unchanged."""
    try:
        return _separated(segment, json.loads(segment.text))
    except (ValueError, RecursionError):  # json.dumps does not accept every depth that json.loads accepts
        return replace(segment, language="text")


def _separated(segment: MessageSegment, written: Any) -> MessageSegment:
    if not isinstance(written, dict):
        return replace(segment, language="json")
    given, name = written.get("arguments"), str(written.get("name") or "")
    if not isinstance(given, dict):
        return replace(segment, language="json", name=name)
    code = given.get("code")
    if not isinstance(code, str):
        return replace(segment, language="json", name=name, text=_json(given))
    more = {key: value for key, value in given.items() if key != "code" and value not in ("", None)}
    return replace(segment, language="python", name=name, text=code, more=_json(more) if more else "")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _trimmed(text: str) -> str:
    return text.lstrip("\n").rstrip()
