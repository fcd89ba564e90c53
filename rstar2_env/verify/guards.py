r"""Guards that look at the text before any parser does.

Covered: length, nesting, runs of digits, and the size of powers, factorials and binomials (``9^{9^{9^9}}``,
``10^{10^{10}}``, ``(10^7)!``), each by one linear scan. Not covered: what takes long for other reasons; the worker's
deadline ends that.
"""

from __future__ import annotations

import re

MAX_CHARS = 4000
"""Longest text that is read, in characters."""

MAX_TEXT_CHARS = 200_000
"""Longest text in which boxes are looked for, in characters."""

MAX_NESTING = 24
"""Deepest nesting of brackets that is read. Legitimate answers (a matrix of fractions in a set) stay under twelve."""

MAX_DIGITS = 400
"""Longest run of digits that is read."""

MAX_EXPONENT = 100_000
"""Largest constant exponent."""

MAX_FACTORIAL = 5_000
"""Largest constant under a factorial, or on top of a binomial."""

_DIGITS = re.compile(rf"\d{{{MAX_DIGITS + 1},}}")
_TOWER = re.compile(
    r"(?:\^|\*\*)\s*[{(\s]*-?\s*[0-9.a-z\\]+[\s})]*(?:\^|\*\*)\s*[{(\s]*-?\s*[0-9.a-z\\]+[\s})]*(?:\^|\*\*)"
)
_POWER = re.compile(r"(?:\^|\*\*)\s*[{(\s]*-?\s*(\d[\d,]*)")
_NESTED_POWER = re.compile(r"(\d+)\s*\}?\s*(?:\^|\*\*)\s*[{(\s]*(\d+)\s*(?:\^|\*\*)\s*[{(\s]*(\d+)")
_FACTORIALS = re.compile(r"!\s*(?:\)\s*)*!\s*(?:\)\s*)*!")
_FACTORIAL = re.compile(r"(\d+)\s*\}?\s*!|(\d+)\s*\^\s*\{?\s*(\d+)\s*\}?\s*[)}\s]*!")
_BINOMIAL = re.compile(r"\\[dt]?binom\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_BIG = re.compile(r"\d{5,}|\^")
_OPEN = frozenset("([{")
_CLOSE = frozenset(")]}")


def too_large(text: str) -> str | None:
    """Say what makes a text too large to read ("length", "nesting", …), or ``None`` when nothing does."""
    if len(text) > MAX_CHARS:
        return "length"
    depth = deepest = 0
    for char in text:
        if char in _OPEN:
            depth += 1
            deepest = max(deepest, depth)
        elif char in _CLOSE:
            depth -= 1
    if deepest > MAX_NESTING:
        return "nesting"
    if _DIGITS.search(text):
        return "digits"
    if "^" in text or "**" in text:
        if any(len(power) > 6 or int(power.replace(",", "")) > MAX_EXPONENT for power in _POWER.findall(text)):
            return "power"
        if _TOWER.search(text):
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
