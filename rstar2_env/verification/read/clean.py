r"""Normalizes the spelling of a text before it is parsed: Unicode, LaTeX spacing and sizing, broken escapes, HTML.

Covered: spelling only; the meaning of a text stays the same. Notations that one regular expression recognizes, such as
``{a \over b}``, "1101 in binary" and "between 2 and 3", are rewritten by a table of patterns (``spellings.txt``). Digit
grouping (``1{,}000``) is joined here if it is unambiguous; ambiguous commas are left to ``readings``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache, partial

from rstar2_env.verification.read import names, words
from rstar2_env.verification.read.vocabulary import unknown_in_label

_DROPPED = "✓✔✅\u200b\ufeff"
_TRANSLATION = str.maketrans(
    {one: new for one, new in names.RESPELLED.items() if len(one) == 1} | dict.fromkeys(_DROPPED, "")
)

_RUN_UP = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣ]+")
_RUN_DOWN = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙₓ]+")
_RUN_CIRCLED = re.compile("[①-⑳]+")
_VULGAR = re.compile(r"(\d*)\s*([¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")

# A form feed never belongs to an answer: it is what remains of "\f" when a text was unescaped once too often. A tab may
# be layout; it is read as "\t" only before what can only be the rest of a command.
_BROKEN = re.compile("\x0c(?=rac|box)|\x08(?=oxed|inom|eta|ar|egin)|\r(?=ight|ho)|\t(?=extcirc|imes|heta|herefore)")
_BROKEN_LETTER = {"\x0c": "\\f", "\x08": "\\b", "\r": "\\r", "\t": "\\t"}
_DOUBLED = re.compile(
    r"(?<!\\)\\\\(?=(?:[dtc]?frac|sqrt|left|right|text|math|pi|infty|cdot|times|leq?|geq?|neq?|in|cup|cap|pm|sin|cos|tan|ln|log|"
    r"circ|boxed|begin|end|theta|alpha|beta|quad|bmod|binom|overline|angle|approx|mid)(?![a-z]))"
)
_DOUBLED_ANYWHERE = re.compile(r"(?<!\\)\\\\(?=[a-zA-Z])(?![a-zA-Z]\s*=)")
_LONE_QUOTE = re.compile(r"(?<![\w.)}\]'])(\\?\"[^\"]*\")(?!\w)|\\?\"")
_STATED = re.compile(r"(-?\d{1,30})(?:(\.\d{1,30})|\s*/\s*(\d{1,30}))?")
_REMARK = re.compile(
    r"\s*[,;]?\s*\\text\s*\{\s*[,;]?\s*\(?\s*(?:since|because|as|the (?:other )?(?:root|value|solution))\b.*\Z"
    r"|\s*[,;(]\s*(?:since|because)\b.*\Z",
    re.DOTALL,
)
_BASE_NAME = re.compile(r"(?<=[\dA-Fa-f])_\{?(two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen)(?![a-z])\}?")
_MARKS = re.compile(r"\s*(\*{1,3}|__|`+)(?!\s)([^*`]+?)(?<!\s)\1\s*([.。]?)\s*", re.DOTALL)
_PREFIXED = re.compile(r"(?<!\w)0(?:b(?P<two>[01]+)|o(?P<eight>[0-7]+)|x(?P<sixteen>[\dA-Fa-f]+))(?!\w)")
_SEPARATED = re.compile(r"(?<![\d.,'_])\d{1,3}(?:(?: \d{3})+|(?:'\d{3})+|(?:_\d{3})+)(?!\d)")
"""Pattern of a number whose thousands are separated by spaces, apostrophes or underscores."""
_IN_DOLLARS = re.compile(r"\s*\$([^$]+)(?<!\\)\$\s*")
_MAX_TWICE = 120
"""Length of the longest text, in characters, that is searched for a number given twice (see ``_once``)."""
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_REASONS = names.LISTS["reasons"]
"""Words that may occur in a remark that gives a reason, after an answer."""


@lru_cache(maxsize=1024)
def clean(text: str) -> str:
    """Return a text in the normalized spelling that the lexer expects."""
    text = _once(text)
    text = _BROKEN.sub(lambda match: _BROKEN_LETTER[match[0]], text)
    if (marked := _MARKS.fullmatch(text)) is not None:
        text = marked[2] + marked[3]  # Markdown around the whole
    if not text.isascii():
        text = _ascii(text)
    if "\\" in text:
        # Two backslashes end a row in a matrix; elsewhere the backslash was escaped once too often.
        text = (_DOUBLED if "\\begin" in text else _DOUBLED_ANYWHERE).sub(lambda _: "\\", text)
        text = _COMMAND.sub(lambda match: names.RESPELLED.get(match[0], match[0]), text)
    if '"' in text:
        text = _LONE_QUOTE.sub(lambda match: match[1] or "''", text)
    layout, spellings = _table()
    text = _rewritten(text, layout)
    text = _PREFIXED.sub(_prefixed, text)
    in_dollars = _IN_DOLLARS.fullmatch(text)
    text = f"${_rewritten(in_dollars[1], spellings)}$" if in_dollars else _rewritten(text, spellings)
    if "_" in text:
        text = _BASE_NAME.sub(lambda match: f"_{{{words.number(match[1])}}}", text)
    text = _SEPARATED.sub(lambda match: "".join(filter(str.isdigit, match[0])), text)
    if "the" in text or "ause" in text or "ince" in text or "as" in text:
        text = _REMARK.sub(_known_remark, text)
    text = text.rstrip("\\ \t").strip()
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text


def _ascii(text: str) -> str:
    text = _RUN_UP.sub(lambda match: f"^{{{_folded(match[0])}}}", text)
    text = _RUN_DOWN.sub(lambda match: f"_{{{_folded(match[0])}}}", text)
    text = _RUN_CIRCLED.sub(lambda match: ",".join(map(_folded, match[0])), text)
    text = _VULGAR.sub(_vulgar, text)
    text = text.translate(_TRANSLATION)
    if not text.isascii():
        # Full-width forms and styled letters become plain ones; accents and other scripts stay as they are.
        text = "".join(_plain(char) for char in text).translate(_TRANSLATION)
    return text


def _once(text: str) -> str:
    """Return the number of a text that gives it twice: "42 (forty-two)", "0.75 (= 3/4)"; other texts unchanged."""
    if len(text) > _MAX_TWICE:
        return text
    first, opened, rest = text.strip(" $").removesuffix(".").partition(" (")
    if not opened or not rest.endswith(")") or (value := _stated(first)) is None:
        return text
    return first if value == _stated(rest[:-1].lstrip(" =")) else text


def _stated(text: str) -> Fraction | None:
    """Return the value of a number in words, or of an integer, decimal or fraction; ``None`` for other texts."""
    if (found := words.number(text.strip())) is not None:
        return Fraction(found)
    written = _STATED.fullmatch(text.strip())
    return None if written is None or not int(written[3] or 1) else Fraction(written[0].replace(" ", ""))


def _known_remark(match: re.Match[str]) -> str:
    """Remove a remark after an answer if it has only known words; otherwise keep it, so that the answer is refused."""
    said = _COMMAND.sub(" ", match[0].replace("\\text", " "))
    return "" if unknown_in_label(said, _REASONS, None) is None else match[0]


def _prefixed(match: re.Match[str]) -> str:
    digits = next(part for part in match.groups() if part is not None)
    return f"{digits.upper()}_{{{words.number(str(match.lastgroup))}}}"


_folded = partial(unicodedata.normalize, "NFKC")
"""Returns a text with superscripts, circled and full-width characters as plain ones."""


def _plain(char: str) -> str:
    """Return the plain form of a character; digits of any script become ASCII digits."""
    digit = unicodedata.decimal(char, None)
    return _folded(char) if digit is None else str(digit)


def _vulgar(match: re.Match[str]) -> str:
    top, bottom = _folded(match[2]).split("⁄")
    return f"{match[1]}\\frac{{{top}}}{{{bottom}}}"


_Rewriting = tuple[tuple[str, ...], re.Pattern[str], str]


def _rewritten(text: str, rows: Sequence[_Rewriting]) -> str:
    """Apply rows of ``spellings.txt`` to a text, in the order of that file."""
    for triggers, pattern, new in rows:
        for trigger in triggers:  # `any` over a generator takes three times as long
            if trigger in text:
                text = pattern.sub(new, text)
                break
    return text


@cache
def _table() -> tuple[list[_Rewriting], list[_Rewriting]]:
    """Return the rows of ``spellings.txt`` in two lists: rows for layout such as Markdown, and rows for formulas.

    A row has strings, a pattern and a replacement. The row applies to a text that contains one of its strings.
    """
    named: dict[str, str] = {}
    parts: tuple[list[_Rewriting], list[_Rewriting]] = [], []
    rows = parts[0]
    for line in names.table("spellings.txt"):
        first, _, rest = line.partition("\t")
        pattern, _, new = rest.partition("\t")
        for name, part in named.items():
            pattern = pattern.replace(f"{{{name}}}", part)
        if line.startswith("@"):
            named[first[1:]] = pattern
        elif rest:
            rows.append((tuple(first.split("|")), re.compile(pattern), new.replace("\\x20", " ")))
        elif line == "---":
            rows = parts[1]
    return parts
