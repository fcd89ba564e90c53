r"""Find the boxed answers in a model's text.

Covered: ``\boxed{}`` and ``\fbox{}`` with nested and escaped braces, spaces before the brace, several boxes, boxes in
boxes, ``$…$`` around or inside. Not covered: where in an episode to look (a dialect's business), and answers that stand
in prose (see ``rstar2_env.verify.prose``).
"""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?:(?P<brace>\{)|(?P<bare>-?[0-9A-Za-z.]+))")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def extract_boxed(text: str) -> list[str]:
    r"""Return the content of every outermost balanced box, in the order of the text.

    A box that never closes is passed over. ``\boxed 7`` without braces holds the run of letters and digits after it.
    A box that holds nothing but another box gives the inner one's content.
    """
    found: list[str] = []
    at = 0
    budget = 64 * len(text) + 4096
    while (match := _BOX.search(text, at)) is not None:
        if match["bare"] is not None:
            found.append(match["bare"].rstrip("."))
            at = match.end()
            continue
        end = _closing(text, match.end())
        budget -= (end if end is not None else len(text)) - match.end()
        if end is None:
            # Unbalanced: boxes may still stand inside. The budget keeps a wall of openings from costing a square.
            at = match.end()
            if budget < 0:
                break
            continue
        found.append(_unwrap(text[match.end() : end]))
        at = end + 1
    return found


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last balanced ``\boxed{}`` or ``\fbox{}``, or ``None`` where there is none.

    The content is stripped of white space and of one pair of ``$`` around it; an empty box gives an empty string.
    """
    boxes = extract_boxed(text)
    return strip_dollars(boxes[-1]) if boxes else None


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


def _closing(text: str, at: int) -> int | None:
    """Index of the brace that closes the group whose content starts at ``at``."""
    depth = 1
    for match in _BRACE.finditer(text, at):
        token = match[0]
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return None


def _unwrap(content: str) -> str:
    content = content.strip()
    while (match := _BOX.match(content)) is not None and match["brace"] is not None:
        end = _closing(content, match.end())
        if end is None or end != len(content) - 1:
            break
        content = content[match.end() : end].strip()
    return content
