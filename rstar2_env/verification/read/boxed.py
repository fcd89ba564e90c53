r"""Find the boxed answers in a model's text.

Covered: ``\boxed{}`` and ``\fbox{}`` with nested and escaped braces, spaces before the brace, several boxes, boxes in
boxes, ``$…$`` around or inside. Not covered: where in an episode to look (``answer`` of a
dialect, ``rstar2_env/dialects``), and answers in
prose (see ``rstar2_env.verification.compare.prose``).
"""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?:(?P<brace>\{)|(?P<bare>-?[0-9A-Za-z.]+))")
_INNER_BOX = re.compile(r"\s*\\(?:boxed|fbox)\s*\{")
_WORDS = re.compile(r"[^\W\d_]+|[=<>]")
_COMMANDS = re.compile(r"\\[a-zA-Z]+")
_CONNECTIVE = re.compile(r"(?:[\s,;${}()\[\]\\]|\b(?:and|or|for\s+part\s+\(?[a-z])\b)*")
_MAX_WORDS_BETWEEN = 2
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def extract_boxed(text: str) -> list[str]:
    r"""Return the content of every outermost balanced box, in the order of the text.

    A box that never closes is skipped. ``\boxed 7`` without braces contains the run of letters and digits after it.
    A box that contains only another box gives the inner one's content.
    """
    return [content for _, _, content in _spans(text)]


def _spans(text: str) -> list[tuple[int, int, str]]:
    """Start, end and content of every outermost balanced box."""
    closings = _closings(text)
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


def joined_boxes(text: str) -> str | None:
    r"""Several boxes with nothing between them but commas, "and" or "or", as one list; ``None`` if there are none.

    ``\boxed{1} and \boxed{2}`` states two values, and so does not answer 2. With any other word or a full stop between
    them only the last box counts: a policy that changes its mind has one answer.
    """
    spans = _spans(text)
    kept = spans[-1:]
    for span in reversed(spans[:-1]):
        if not _CONNECTIVE.fullmatch(_COMMANDS.sub(" ", text[span[1] : kept[0][0]])):
            break
        kept.insert(0, span)
    contents = [strip_dollars(content) for _, _, content in kept]
    return ", ".join(contents) if len(set(contents)) > 1 else None


def gold_answer(text: str) -> str:
    r"""The answer that a gold text states: its boxes, joined if only commas or "and" separate them, or the text itself.

    Data sets box the parts of an answer one by one (``\boxed{1} and \boxed{2}``). Only gold texts are read this way; of
    a policy's boxes the last one counts.
    """
    spans = _spans(text)
    if not spans:
        opened = _BOX.search(text)
        return strip_dollars(text[opened.end() :]) if opened is not None and opened["brace"] else text.strip()
    kept = [spans[-1]]
    for start, end, content in reversed(spans[:-1]):
        between = _WORDS.findall(_COMMANDS.sub(" ", text[end : kept[0][0]]))
        if len(between) > _MAX_WORDS_BETWEEN:
            break
        kept.insert(0, (start, end, content))
    return strip_dollars(kept[0][2]) if len(kept) == 1 else ", ".join(strip_dollars(content) for _, _, content in kept)


def strip_dollars(text: str) -> str:
    r"""Strip white space and the math delimiters (``$``, ``$$``, ``\(``, ``\[``) that enclose the whole text."""
    text = text.strip()
    for opening, closing in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        if len(text) >= len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
            inner = text[len(opening) : len(text) - len(closing)]
            if opening[0] not in inner and closing not in inner and not inner.endswith("\\"):
                return inner.strip()
            if opening[0] == "\\" and opening not in inner and closing not in inner:
                return inner.strip()
    return text


def _closings(text: str) -> dict[int, int]:
    """For every brace that opens a group, where it closes; escaped braces are text. One pass, however deep."""
    closings: dict[int, int] = {}
    pending: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            pending.append(match.start())
        elif match[0] == "}" and pending:
            closings[pending.pop()] = match.start()
    return closings


def _unwrapped(text: str, start: int, end: int, closings: dict[int, int]) -> str:
    """The content of a box, or of the innermost one if boxes contain only another box."""
    while (match := _INNER_BOX.match(text, start)) is not None:
        inner_end = closings.get(match.end() - 1)
        if inner_end is None or inner_end > end or text[inner_end + 1 : end].strip():
            break
        start, end = match.end(), inner_end
    return text[start:end].strip()
