r"""Checks size limits of a text before it is parsed.

Covered: length, nesting, runs of digits, and the size of powers, factorials and binomials (``9^{9^{9^9}}``,
``10^{10^{10}}``, ``(10^7)!``), each by one linear scan. Not covered: texts that take long for other reasons; the
worker's deadline ends their computation.
"""

from __future__ import annotations

import re
from itertools import accumulate

MAX_CHARS = 4000
"""Length of the longest text that is parsed, in characters."""

MAX_TEXT_CHARS = 200_000
"""Length of the longest text that is searched for boxes, in characters."""

MAX_NESTING = 24
"""Deepest nesting of brackets that is parsed. Legitimate answers (a matrix of fractions in a set) need less than
twelve."""

MAX_DIGITS = 400
"""Length of the longest run of digits that is parsed."""

MAX_EXPONENT = 100_000
"""Largest constant exponent of a power."""

MAX_TOWER = 2
"""Largest height of a tower of powers; ``e^{x^2}`` has a tower of height two."""

MAX_FACTORIAL = 5_000
"""Largest constant whose factorial is taken, and largest upper entry of a binomial coefficient."""

_DIGITS = re.compile(rf"\d{{{MAX_DIGITS + 1},}}")
_CARET = re.compile(r"\^|\*\*|[{(\[]|[})\]]")
_AFTER_CARET = re.compile(r"\s*(?:(?P<open>[{(])|-?\s*(?:\\[a-zA-Z]+|\d+|[a-zA-Z])(?P<chain>\s*(?:\^|\*\*))?)")
_POWER = re.compile(r"(?:\^|\*\*)\s*[{(\s]*-?\s*(\d[\d,]*)")
_NESTED_POWER = re.compile(r"(\d+)\s*\}?\s*(?:\^|\*\*)\s*[{(\s]*(\d+)\s*(?:\^|\*\*)\s*[{(\s]*(\d+)")
_FACTORIALS = re.compile(r"[\d)}]\s*!\s*(?:\)\s*)*!\s*(?:\)\s*)*!")
_FACTORIAL = re.compile(r"(\d+)\s*\}?\s*!|(\d+)\s*\^\s*\{?\s*(\d+)\s*\}?\s*[)}\s]*!")
_BINOMIAL = re.compile(r"\\[dt]?binom\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_BIG = re.compile(r"\d{5,}|\^")
_OPEN = frozenset("([{")
_CLOSE = frozenset(")]}")


def too_large(text: str) -> str | None:
    """Return the name of the limit that a text exceeds ("length", "nesting", …), or ``None`` if it exceeds none."""
    if len(text) > MAX_CHARS:
        return "length"
    # To count the brackets is faster than to follow them.
    if sum(map(text.count, _OPEN)) > MAX_NESTING < max(accumulate((x in _OPEN) - (x in _CLOSE) for x in text)):
        return "nesting"
    if _DIGITS.search(text):
        return "digits"
    if "^" in text or "**" in text:
        high = (len(power) > 6 or int(power.replace(",", "")) > MAX_EXPONENT for power in _POWER.findall(text))
        if any(high) or _tower_height(text) > MAX_TOWER:
            return "power"
        for _, base, power in _NESTED_POWER.findall(text):
            if len(base) > 6 or len(power) > 6 or (int(base) > 1 and int(base) ** min(int(power), 64) > MAX_EXPONENT):
                return "power"
    if "!" in text:
        if _FACTORIALS.search(text):
            return "factorial"
        for plain, base, power in _FACTORIAL.findall(text):
            if plain and (len(plain) > 5 or int(plain) > MAX_FACTORIAL):
                return "factorial"
            if base and int(base[:6]) ** min(int(power[:6]), 64) > MAX_FACTORIAL:
                return "factorial"
    if "binom" in text and any(_BIG.search(top) for top in _BINOMIAL.findall(text)):
        return "binomial"
    return None


def _tower_height(text: str) -> int:
    """Return the largest height of a tower of powers: 2 for ``2^{3^4}``, also written ``2^3^4``."""
    highest = height = chain = at = 0
    pending: list[int] = []  # for each open bracket, how far the height falls when it closes
    while (match := _CARET.search(text, at)) is not None:
        at = match.end()
        token = match[0]
        if token in _OPEN:
            pending.append(0)
        elif token in _CLOSE:
            height -= pending.pop() if pending else 0
        elif (after := _AFTER_CARET.match(text, at)) is not None:
            if after["open"]:
                height += chain + 1
                pending.append(chain + 1)
                chain = 0
                at = after.end()
                highest = max(highest, height)
            else:
                chain = chain + 1 if after["chain"] else 0
                highest = max(highest, height + chain + 1)
    return highest
