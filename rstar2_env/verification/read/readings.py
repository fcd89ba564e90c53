r"""Parses a text with ambiguous notation (``1,234``, ``1,5``, ``]0,1[``, ``1/2x``) in every possible way.

Covered: at most four trees for a text, the most likely first. Two answers are equal if any reading of one equals any
reading of the other.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from rstar2_env.verification.read import names, units, words
from rstar2_env.verification.read.boxed import strip_dollars
from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.lexer import ReadError
from rstar2_env.verification.read.nodes import Node, Num, Words, key
from rstar2_env.verification.read.normal import normal
from rstar2_env.verification.read.parser import read

_THOUSANDS = re.compile(r"(?<![\d.,])([1-9]\d{0,2})((?:,\d{3})+|(?:,\d{2})+,\d{3})(?![\d,]|\.\d*,)")
_PLAIN_THOUSANDS = re.compile(r"\s*-?\d{1,3}(?:,\d{3})+\s*")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[eE]([+-]?\d{1,4})(?![\w.])(?: ([a-zA-Z]{2,}))?")
_WORD_LIKE = re.compile(
    rf"(?<![A-Za-z\\_])(?:{'|'.join(sorted(word for word in names.WORDS if 2 <= len(word) <= 3))})(?![A-Za-z])", re.I
)
_SET_IN_WORDS = re.compile(r"\\(?:text|math|begin|operatorname|mbox)|(?<![\\A-Za-z])[A-Za-z]{4}")
_SIGN = re.compile(r"[\\^_=+/]")
_DOTTED_THOUSANDS = re.compile(
    r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?!\d|\.\d)|(?<![\d.,])\d{1,3}(?:\.\d{3})+(?=\s*(?:€|euro))", re.I
)
_COMMA_AND_UNIT = re.compile(r"\d+,\d{1,2}\s*(?:€|\\?%|[^\W\d_]{2,})[^,]*")
_COUNTED = re.compile(r"[^\W\d_]{3,}(?:[ -][^\W\d_]+)+")
_ZEROS = re.compile(r",0\d\d")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![\d,.])")
_TIGHT = re.compile(r"/\s*(?:\d+(?:\.\d+)?|[a-zA-Z])\s?(?=[a-zA-Z\\(])")
_OUTWARD = re.compile(r"([\[\]])\s*([^\[\]]+?)\s*[,;]\s*([^\[\]]+?)\s*([\[\]])")
_PADDED = re.compile(
    r"(?<![\d.,])0\d+\s*/\s*\d|\d\s*/\s*0\d+(?![\d.])|\\frac\s*\{\s*-?0\d|\\frac\s*\{[^{}]*\}\s*\{\s*-?0\d"
)
"""Pattern of a quotient with a leading zero, such as "03/04": a date, code or time, never a fraction."""
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?")

_DECIMAL = re.compile(r"\d+(?:\.\d+)?")
_TO = re.compile(r"\s*(?:\\text\s*\{\s*(?:is\s+)?to\s*\}|\b(?:is\s+)?to\b)\s*")
_OUT_OF = re.compile(r"\s*(?:\\text\s*\{\s*(?:out of|in)\s*\}|\b(?:out of|in)(?: every)?\b)\s*")
_RATIO = re.compile(
    r"[^\d=]*\b(?:ratio|odds|proportions?)\b(?:[^\d=]*\b(?:is|are|was|were))?[ :]+(?=\S)", re.IGNORECASE
)

MAX_READINGS = 4


@lru_cache(maxsize=1024)
def readings(text: str) -> tuple[Node, ...]:
    """Parse a text in every way that its notation allows; return the trees.

    Raises:
        ReadError: No reading is possible, or a fraction has a leading zero (``03/04`` is a date); the message describes
            the failure of the last reading that was tried.
    """
    cleaned = _REPEATING.sub(_repeating, clean(text))
    trees: dict[str, Node] = {}
    failure = ReadError("it is empty")
    inner = strip_dollars(cleaned)
    if (said := words.number(inner)) is not None:
        return (Num(Fraction(said)),)
    if (day := words.date(inner)) is not None:
        return (Words(day),)
    if _PADDED.search(cleaned):
        raise ReadError("it may be a date or a fraction: the numerator or the denominator begins with a zero")
    if (moment := words.clock(inner)) is not None:
        trees[moment] = Words(moment)
        if "m" in inner.lower():
            return tuple(trees.values())  # with "AM" or "PM" it can only be a time; otherwise it may also be a ratio
    if (joined := _joined(inner, _TO, ":") or share(inner) or _labelled_ratio(inner)) is not None:
        cleaned = joined  # "3 to 5", "1 out of 2"
    elif _COUNTED.fullmatch(inner) and (counted := words.with_digits(inner)) is not None:
        cleaned = counted
    spellings = [(spelling, False) for spelling in _spellings(cleaned)]
    if _WORD_LIKE.search(cleaned) and _SIGN.search(cleaned) and not _SET_IN_WORDS.search(cleaned):
        spellings.append((cleaned, True))
    for spelling, letters in spellings:
        for tight in (False, True) if _TIGHT.search(spelling) else (False,):
            if len(trees) == MAX_READINGS:
                break
            try:
                tree = normal(read(spelling, tight_division=tight, letters=letters), read)
            except ReadError as error:
                failure = error
                continue
            trees.setdefault(key(tree), tree)
    if not trees:
        raise failure
    return tuple(trees.values())


def possible_readings(text: str) -> tuple[Node, ...]:
    """Return the trees of a text as ``readings`` does; an empty tuple if no reading is possible."""
    try:
        return readings(text)
    except ReadError:
        return ()


def _joined(text: str, word: re.Pattern[str], sign: str) -> str | None:
    """Replace the word between numbers, such as "out of" in "one out of two", by a sign; ``None`` for other texts."""
    parts = [part.replace(",", "") if _PLAIN_THOUSANDS.fullmatch(part) else part for part in word.split(text)]
    terms = [part if _DECIMAL.fullmatch(part) else words.number(part) for part in parts if len(parts) > 1]
    return sign.join(map(str, terms)) if len(terms) > 1 and None not in terms else None


def share(text: str) -> str | None:
    """Return a share such as "one out of two" or "3 in 10" as a fraction; ``None`` for other texts.

    A share has two whole numbers, the first of which is not the larger one: "12 in 1" is not a share.
    """
    joined = _joined(text, _OUT_OF, "/")
    terms = [] if joined is None else joined.split("/")
    if len(terms) != 2 or not all(map(str.isdecimal, terms)) or int(terms[0]) > int(terms[1]):
        return None
    return joined


def _labelled_ratio(text: str) -> str | None:
    """Write the value of "the ratio is 3 to 2" with a colon; return ``None`` for a text that names no ratio."""
    label = _RATIO.match(text)
    joined = None if label is None else _joined(text[label.end() :], _TO, ":")
    return None if label is None or joined is None else label[0] + joined


def _power_of_ten(match: re.Match[str]) -> str:
    """Return ``1.5e3`` as a product with a power of ten, with the unit after it marked as text."""
    unit = match[3] or ""
    after = f"\\text{{ {unit}}}" if unit and units.read_unit(unit) is not None else unit and f" {unit}"
    return f"{match[1]} \\times 10^{{{match[2]}}}{after}"


def _spellings(text: str) -> list[str]:
    """Return the texts to parse in place of a text, the most likely first; usually the last one is the text itself."""
    found = []
    if (power := _SCIENTIFIC.sub(_power_of_ten, text)) != text:
        found.append(power)
    if (joined := _DOTTED_THOUSANDS.sub(lambda match: match[0].replace(".", ""), text)) != text:
        found.append(joined)
    if "," in text:
        if _THOUSANDS.search(text):
            found.append(_THOUSANDS.sub(lambda match: match[1] + match[2].replace(",", ""), text))
            if _PLAIN_THOUSANDS.fullmatch(text) and not _ZEROS.search(text):
                return [*found, f"({text})"]  # "325,950" may be two answers, in this order
            if "," not in found[-1] and not text.startswith(("(", "[", "{", "\\{")):
                return found  # "2,000 m" is not a list
        if (comma := _decimal_comma(text)) is not None:
            found.append(comma)
    if (turned := _OUTWARD.sub(_turn_brackets, text)) != text:
        found.append(turned)
    return [*found[:2], text]


def _decimal_comma(text: str) -> str | None:
    """Return the text with its only comma as a decimal point; ``None`` if a list of two numbers is as likely."""
    matches = list(_DECIMAL_COMMA.finditer(text))
    if len(matches) != 1 or text.count(",") != 1 or any(bracket in text for bracket in "([{"):
        return None
    whole, part = matches[0].groups()
    if whole != "0" and (len(part) < 2 or len(part) == 3) and not _COMMA_AND_UNIT.fullmatch(text):
        return None
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


def _turn_brackets(match: re.Match[str]) -> str:
    opening, low, high, closing = match.groups()
    if opening == "[" and closing == "]":
        return match[0]
    return f"{'(' if opening == ']' else '['}{low},{high}{')' if closing == '[' else ']'}"


def _repeating(match: re.Match[str]) -> str:
    """Return a repeating decimal as a fraction."""
    whole, fixed, period = match.groups()
    if len(fixed) + len(period) > 60:
        return match[0]
    scale = 10 ** len(fixed) * (10 ** len(period) - 1)
    top = int((whole or "0") + fixed + period) - int((whole or "0") + fixed)
    return f"\\frac{{{top}}}{{{scale}}}"
