r"""The readings of a text whose notation is ambiguous: ``1,234``, ``1,5``, ``]0,1[``, ``1/2x``.

Covered: at most four trees for a text, the most likely first. Two answers are the same if any of their readings are.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.lexer import ReadError
from rstar2_env.verification.read.nodes import Node, key
from rstar2_env.verification.read.normal import normal
from rstar2_env.verification.read.parser import read

_THOUSANDS = re.compile(r"(?<![\d.,])([1-9]\d{0,2})((?:,\d{3})+)(?![\d,]|\.\d*,)")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![\d,.])")
_TIGHT = re.compile(r"/\s*(?:\d+(?:\.\d+)?|[a-zA-Z])\s?(?=[a-zA-Z\\(])")
_OUTWARD = re.compile(r"([\[\]])\s*([^\[\]]+?)\s*[,;]\s*([^\[\]]+?)\s*([\[\]])")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?")

MAX_READINGS = 4


@lru_cache(maxsize=1024)
def readings(text: str) -> tuple[Node, ...]:
    """Read a text in every way that its notation allows.

    Raises:
        ReadError: No reading is possible; the message describes the failure of the first.
    """
    cleaned = _REPEATING.sub(_repeating, clean(text))
    trees: list[Node] = []
    seen: set[str] = set()
    failure = ReadError("an empty text")
    for spelling in _spellings(cleaned):
        for tight in (False, True) if _TIGHT.search(spelling) else (False,):
            if len(trees) == MAX_READINGS:
                break
            try:
                tree = normal(read(spelling, tight_division=tight))
            except ReadError as error:
                failure = error
                continue
            name = key(tree)
            if name not in seen:
                seen.add(name)
                trees.append(tree)
    if not trees:
        raise failure
    return tuple(trees)


def _spellings(text: str) -> list[str]:
    """The text as it is, and as it would be written without ambiguity."""
    found = []
    if "," in text:
        if _THOUSANDS.search(text):
            found.append(_THOUSANDS.sub(lambda match: match[1] + match[2].replace(",", ""), text))
        if (comma := _decimal_comma(text)) is not None:
            found.append(comma)
    if _OUTWARD.search(text):
        turned = _OUTWARD.sub(_turn_brackets, text)
        if turned != text:
            found.append(turned)
    return [*found[:2], text]


def _decimal_comma(text: str) -> str | None:
    """The text with its one comma read as a decimal point, unless a list of two numbers is as likely."""
    matches = list(_DECIMAL_COMMA.finditer(text))
    if len(matches) != 1 or text.count(",") != 1 or any(bracket in text for bracket in "([{"):
        return None
    whole, part = matches[0].groups()
    if whole != "0" and (len(part) < 2 or len(part) == 3):
        return None
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


def _turn_brackets(match: re.Match[str]) -> str:
    opening, low, high, closing = match.groups()
    if opening == "[" and closing == "]":
        return match[0]
    return f"{'(' if opening == ']' else '['}{low},{high}{')' if closing == '[' else ']'}"


def _repeating(match: re.Match[str]) -> str:
    """A repeating decimal as a fraction."""
    whole, fixed, period = match.groups()
    if len(fixed) + len(period) > 60:
        return match[0]
    scale = 10 ** len(fixed) * (10 ** len(period) - 1)
    top = int((whole or "0") + fixed + period) - int((whole or "0") + fixed)
    return f"\\frac{{{top}}}{{{scale}}}"
