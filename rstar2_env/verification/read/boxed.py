r"""Finds the ``\boxed{}`` answers in a text.

Covered: ``\boxed{}`` and ``\fbox{}`` with nested and escaped braces, spaces before the brace, several boxes, boxes in
boxes, ``$…$`` around or inside. Not covered: which turn of an episode has the answer (``Dialect.answer``,
``rstar2_env.dialects``), and answers without a box (``response_answer``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rstar2_env.verification.read.words import SCALES

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?:(?P<brace>\{)|(?P<bare>-?[0-9A-Za-z.]+))")
_INNER_BOX = re.compile(r"\s*\\(?:boxed|fbox)\s*\{")
_WORDS = re.compile(r"[^\W\d_]+|[=<>]")
_COMMANDS = re.compile(r"\\[a-zA-Z]+")
_STOP = re.compile(r"[.!?。！？](?=\s|$|[^\x00-\x7f])|\n\s*\n")
_NEGATION = re.compile(
    r"(?:\b(?:not|never|cannot\s+be|neither|nor)|n['’]t)\s+(?:be\s+|equal\s+(?:to\s+)?)?[\s$=(\\]*\Z", re.IGNORECASE
)
"""Pattern of a negation right before a box; a negation elsewhere in the sentence ("who do not play is") does not negate
the box."""
_SCALE_AFTER = re.compile(
    r"[\s$]*(?:\\text\s*\{\s*)?(\\?%|percent(?:age)?\b|pct\b|"
    rf"(?:{'|'.join(sorted(SCALES, key=len, reverse=True))})(?![^\W\d_]))",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"\\(?:boxed|fbox)\s*(?P<box>\{)"
    r"|(?P<line>^[ \t]*)?(?:<(?P<tag>tool_call|tool_response)>(?P<json>\s*\{)?|(?P<comment><!--))"
    r"|^[ \t]*(?P<fence>`{3,})[ \t]*(?:python3?|py|output)\b(?:.*?(?P=fence)`*|(?:(?!\\boxed).)*\Z)"
    r"|^[ \t]*(?P<percent>%)(?P<hidden>[ \t$]*\\(?:boxed|fbox))?[^\n]*",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""Pattern of any of: the opening of a box; a tool tag; ``<!--``; a whole fenced program or output; a ``%`` comment."""
_ENDS = {
    "tool_call": re.compile("</tool_call>", re.IGNORECASE),
    "tool_response": re.compile("</tool_response>", re.IGNORECASE),
    "<!--": re.compile("-->"),
}
_NUMBER_BEFORE = re.compile(r"\d[ \t$]{0,4}\r?\n\Z")
"""Pattern of a number at the end of a line. A percent sign on the next line belongs to the number and does not begin a
comment, unless a box comes right after the sign."""
_TOOL_MARKS = ("```", "<", "%")
_PART = re.compile(r"\bfor\s+part\s+\(?[a-z]\b|\b[A-Za-z](?:_\{?\w+\}?)?\s*=[\s$]*\Z")
"""Pattern of text that names the part of an answer in the next box: "for part (b)", "y = "."""
_MAX_WORDS_BETWEEN = 2
_MAX_NEGATION_CHARS = 60
"""Number of characters before a box that are searched for a negation."""
_DELIMITED = re.compile(
    r"\$\$([^$]*)(?<!\\)\$\$|\$([^$]*)(?<!\\)\$|\\\(((?:(?!\\[()]).)*)\\\)|\\\[((?:(?!\\[\[\]]).)*)\\\]", re.DOTALL
)
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def without_tool_text(text: str) -> str:
    """Return a text without programs, tool results and comments, which are not the policy's answer.

    A tool call or result without its closing tag extends to the end of the text if its tag starts a line or JSON
    follows it; otherwise the text only mentions the tag, and nothing is removed. Boxes are never changed.
    """
    if not any(mark in text for mark in _TOOL_MARKS):
        return text
    closings = closing_braces(text)
    unclosed: set[str] = set()
    kept: list[str] = []
    at = start = 0
    while (match := _OPENING.search(text, at)) is not None:
        end = match.end()
        if match["box"]:
            at = closings.get(end - 1, end - 1) + 1
            continue
        at = end
        if match["percent"]:
            number = _NUMBER_BEFORE.search(text, max(0, match.start() - 8), match.start())
            if match["hidden"] is None and number is not None:
                continue
        elif not match["fence"]:
            name = (match["tag"] or match["comment"]).lower()
            close = None if name in unclosed else _ENDS[name].search(text, end)
            if close is not None:
                end = close.end()
            else:
                unclosed.add(name)
                if match["comment"] or (match["line"] is None and not match["json"]):
                    continue
                end = len(text)
        kept.append(text[start : match.start()])
        at = start = end
    return " ".join((*kept, text[start:]))


def extract_boxed(text: str) -> list[str]:
    r"""Return the content of every outermost balanced box, in the order of the text.

    A box that never closes is skipped. A box without braces, ``\boxed 7``, contains the letters and digits that follow.
    A box that contains only another box gives the content of the inner box.
    """
    return [content for _, _, content in _spans(text)]


def _spans(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and content of every outermost balanced box."""
    closings = closing_braces(text)
    found: list[tuple[int, int, str]] = []
    at = 0
    while (match := _BOX.search(text, at)) is not None:
        at = match.end()
        if match["bare"] is not None:
            found.append((match.start(), at, match["bare"].rstrip(".")))
            continue
        end = closings.get(at - 1)
        if end is not None:  # otherwise it is unbalanced, and may still contain boxes
            found.append((match.start(), end + 1, _unwrapped(text, at, end, closings)))
            at = end + 1
    return found


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last balanced ``\boxed{}`` or ``\fbox{}``, or ``None`` if there is none.

    The content is stripped of white space and of one pair of ``$`` around it; an empty box gives an empty string.
    """
    boxes = extract_boxed(text)
    return strip_dollars(boxes[-1]) if boxes else None


def boxed_answer(text: str) -> str | None:
    r"""Return the answer in the boxes of a policy's text; ``None`` if it has no box or negates its last box.

    ``\boxed{1} and \boxed{2}`` states two values, so it does not equal 2: boxes are joined into a list if at most two
    words and no full stop separate them. Otherwise only the last box counts, since a policy that corrects itself has
    one answer. A percent sign or a scale (``\boxed{7} million``) after the last box belongs to the answer, and
    ``not \boxed{7}`` is not an answer. Boxes in programs, tool results and comments do not count.
    """
    return last_boxed_answer([text])


def scale_after(text: str, content: str, end: int) -> str:
    """Return the percent sign or scale (such as million) after a box; empty if there is none.

    Args:
        text: The text.
        content: The content of the box. A scale that it contains is not repeated.
        end: The position after the box.
    """
    if (found := _SCALE_AFTER.match(text, end)) is None:
        return ""
    scale = f" {found[1]}" if found[1].lower() in SCALES else "%"
    return "" if scale.strip().lower() in content.lower() else scale


def last_boxed_answer(newest_first: Iterable[str]) -> str | None:
    """Return the answer of the latest turn that has a box; ``None`` if no turn has one, or if the box is negated.

    Args:
        newest_first: The turns, the last one first; turns before the one with a box are not read.
    """
    for turn in newest_first:
        own = without_tool_text(turn)
        if spans := _last_spans(own, stops=True):
            return _joined(own, spans)
    return None


def _joined(text: str, kept: list[tuple[int, int, str]]) -> str | None:
    """Join the boxes ``kept`` (start, end and content) into one answer; ``None`` if ``text`` negates them."""
    start, end = kept[0][0], kept[-1][1]
    if _NEGATION.search(text[max(0, start - _MAX_NEGATION_CHARS) : start]):
        return None
    contents = list(dict.fromkeys(strip_dollars(content) for _, _, content in kept))
    return ", ".join(contents) + scale_after(text, contents[-1], end)


def gold_answer(text: str) -> str:
    r"""Return the answer in a gold text: its last boxes, joined if at most two words separate them, or the text itself.

    Data sets box the parts of an answer one by one (``\boxed{1} and \boxed{2}``). In a policy's text, boxes that a full
    stop separates are not joined (see ``boxed_answer``).
    """
    kept = _last_spans(text, stops=False)
    if not kept:
        opened = _BOX.search(text)
        return strip_dollars(text[opened.end() :]) if opened is not None and opened["brace"] else text.strip()
    return ", ".join(strip_dollars(content) for _, _, content in kept)


def _last_spans(text: str, *, stops: bool) -> list[tuple[int, int, str]]:
    """Return the last box and the boxes before it, as long as at most two words separate them.

    Args:
        text: The text.
        stops: Whether a full stop also separates boxes; if so, names of parts of the answer ("y = ") are not counted as
            words.
    """
    spans = _spans(text)
    kept = spans[-1:]
    for span in reversed(spans[:-1]):
        between = _COMMANDS.sub(" ", text[span[1] : kept[0][0]])
        between = _PART.sub(" ", between) if stops else between
        if len(_WORDS.findall(between)) > _MAX_WORDS_BETWEEN or (stops and _STOP.search(between)):
            break
        kept.insert(0, span)
    return kept


def strip_dollars(text: str) -> str:
    r"""Strip white space and the math delimiters (``$``, ``$$``, ``\(``, ``\[``) that enclose the whole text."""
    text = text.strip()
    match = _DELIMITED.fullmatch(text)
    return text if match is None else match[match.lastindex or 0].strip()


def closing_braces(text: str) -> dict[int, int]:
    """Map the position of each opening brace to that of its closing brace, in one pass; escaped braces are text."""
    closings: dict[int, int] = {}
    pending: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            pending.append(match.start())
        elif match[0] == "}" and pending:
            closings[pending.pop()] = match.start()
    return closings


def _unwrapped(text: str, start: int, end: int, closings: dict[int, int]) -> str:
    """Return the content of a box; if it contains only another box, the content of the innermost box."""
    while (match := _INNER_BOX.match(text, start)) is not None:
        inner_end = closings.get(match.end() - 1)
        if inner_end is None or inner_end > end or text[inner_end + 1 : end].strip():
            break
        start, end = match.end(), inner_end
    return text[start:end].strip()
