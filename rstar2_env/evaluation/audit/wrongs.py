"""Wrong answers for a gold answer, by cause: mistakes that a comparison of texts or numbers may overlook.

Each function of ``WRONG`` takes a gold answer of its class and returns pairs of a cause and a wrong answer. The caller
drops answers that happen to equal the gold answer (``golds.differ``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

Pairs: TypeAlias = Iterator[tuple[str, str]]

_NUMBER = re.compile(r"\s*([+-]?)(\d+)(?:\.(\d+))?(?:\s*/\s*(\d+))?\s*")
_MOST_DIGITS = 40
_WRAPS = (9, 10, 100, 256, 1000, 2**16, 2**32, 2**64)


def number_of(text: str) -> Fraction | None:
    """Return the value of a plain number or quotient; ``None`` for any other text."""
    match = _NUMBER.fullmatch(text) if len(text) <= _MOST_DIGITS and text.isascii() else None
    if match is None or (match[4] and (match[3] or not int(match[4]))):
        return None
    value = Fraction(int(match[2] + (match[3] or "")), 10 ** len(match[3] or "")) / int(match[4] or 1)
    return -value if match[1] == "-" else value


def _integers(gold: str) -> Pairs:
    value, sign, digits = int(gold), "-" if gold.startswith("-") else "", gold.lstrip("-")
    yield "the next number", str(value + 1)
    yield "the previous number", str(value - 1)
    yield "the other sign", str(-value)
    yield "a digit appended", f"{gold}5"
    yield "a zero appended", f"{gold}0"
    yield "a digit prepended", f"{sign}1{digits}"
    yield "written twice", f"{sign}{digits}{digits}"
    yield "a fraction part added", f"{gold}.{next(digit for digit in '4368' if digit not in digits[-1])}"
    yield "a large fraction part added", f"{gold}.{next(digit for digit in '97' if digit not in digits[-1])}"
    yield "within five percent", str(value + max(1, abs(value) // 25))
    yield "within one percent", str(value + max(1, abs(value) // 125))
    yield "a tenth", f"{value / 10:g}"
    for wrap in _WRAPS:
        yield f"equal modulo {wrap}", str(value + wrap)
    if len(digits) > 1:
        yield "the last digit dropped", sign + digits[:-1]
        yield "the first digit dropped", sign + (digits[1:].lstrip("0") or "0")
        yield "one digit only", digits[-1]
        yield "digits reversed", sign + digits[::-1]
        yield "digits sorted", sign + "".join(sorted(digits, key=lambda digit: (digit == "0", digit)))
        yield "the last digit changed", f"{gold[:-1]}{(int(gold[-1]) + 3) % 10}"


def _decimals(gold: str) -> Pairs:
    value, (whole, _, part) = float(gold), gold.partition(".")
    yield "the next number", f"{value + 1:.6g}"
    yield "the other sign", f"{-value:.6g}"
    yield "the point dropped", whole + part
    yield "the point moved", f"{value * 10:.6g}"
    yield "the point moved back", f"{value / 10:.6g}"
    yield "the fraction part dropped", whole
    yield "rounded", f"{value:.0f}"
    yield "the fraction part changed", f"{whole}.{(int(part[0]) + 3) % 10}{part[1:]}"
    yield "a digit appended", f"{gold}7"
    yield "the last digit changed", f"{gold[:-1]}{(int(gold[-1]) + 3) % 10}"
    yield "within five percent", f"{value * 1.03:.6g}"
    yield "a hundredth more", f"{value + 0.01:.6g}"
    yield "written twice", whole + part + "." + part


def _fractions(gold: str) -> Pairs:
    top, _, bottom = gold.partition("/")
    yield "another numerator", f"{int(top) + 1}/{bottom}"
    yield "another denominator", f"{top}/{int(bottom) + 1}"
    yield "inverted", f"{bottom}/{top}" if not top.startswith("-") else f"-{bottom}/{top[1:]}"
    yield "the other sign", gold[1:] if gold.startswith("-") else f"-{gold}"
    yield "the slash dropped", top + bottom
    yield "the numerator alone", top
    yield "the denominator alone", bottom
    yield "one", "1/1"


def _replaced(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old in text else text


def _formulas(gold: str) -> Pairs:
    for cause, old, new in (
        ("another sign", "+", "-"), ("another sign", "-", "+"), ("another exponent", "^2", "^3"),
        ("the exponent dropped", "^2", ""), ("the exponent as a factor", "^2", "2"), ("another operation", "+", "*"),
        ("the braces swapped", "{1}{2}", "{2}{1}"), ("the braces swapped", "{3}{4}", "{4}{3}"),
        ("the root dropped", "\\sqrt", ""), ("another letter", "\\pi", "\\phi"),
        ("another command", "\\frac", "\\sqrt"),
    ):  # fmt: skip
        yield cause, _replaced(gold, old, new)
    found = list(re.finditer(r"\d", gold))
    for match in (found[0], found[-1]) if found else ():
        changed = str((int(match[0]) + 4) % 10 or 6)
        yield "another digit", gold[: match.start()] + changed + gold[match.end() :]
    yield "a term added", f"{gold}+9"
    yield "cut", gold[: max(1, len(gold) // 2)]


def _words(gold: str) -> Pairs:
    middle = len(gold) // 2
    yield "extended", f"{gold}ville"
    yield "prefixed", f"un{gold}"
    yield "cut", gold[:-1]
    yield "the first letter", gold[0]
    yield "the first two letters", gold[:2]
    yield "the last letter", gold[-1]
    yield "a letter changed", gold[:middle] + ("q" if gold[middle] != "q" else "z") + gold[middle + 1 :]
    yield "reversed", gold[::-1]
    yield "letters sorted", "".join(sorted(gold))
    yield "the same length", "".join("q" if one != "q" else "z" for one in gold)
    yield "the same ends", gold[0] + "x" * (len(gold) - 2) + gold[-1]
    yield "the same consonants", re.sub("[aeiou]", lambda match: "uoaei"["aeiou".index(match[0])], gold)
    yield "written twice", gold + gold
    yield "a word with the same beginning", f"{gold[0]}rgle"
    yield "its first half", gold[: (len(gold) + 1) // 2]


def _phrases(gold: str) -> Pairs:
    words = gold.split()
    yield "the words reversed", " ".join(reversed(words))
    yield "the last word dropped", " ".join(words[:-1])
    yield "the first word dropped", " ".join(words[1:])
    yield "the last word changed", " ".join([*words[:-1], "table"])
    yield "the first word changed", " ".join(["table", *words[1:]])
    yield "a word added", f"{gold} table"
    yield "one word", max(words, key=len)
    yield "one letter", gold[0]
    yield "the initials", "".join(word[0] for word in words)
    yield "cut", gold[:-3]


def _choices(gold: str) -> Pairs:
    yield "all letters", "ABCDE"
    yield "all letters, spaced", "A B C D E"
    yield "a word with this letter first", f"{gold}rgle"
    yield "a word with this letter in it", f"wr{gold.lower()}ng"
    yield "two letters", f"{gold}{'ABCDE'[('ABCDE'.index(gold) + 1) % 5]}"
    yield "the next letter", "ABCDE"[("ABCDE".index(gold) + 1) % 5]
    yield "not a choice", "Z"


def _booleans(gold: str) -> Pairs:
    opposite = {"yes": "no", "no": "yes", "true": "false", "false": "true"}[gold.lower()]
    yield "the opposite", opposite
    yield "the opposite, with a capital", opposite.title()
    yield "undecided", "maybe"
    yield "the first letter of the opposite", opposite[0]
    yield "both", "yes/no" if gold.lower() in ("yes", "no") else "true/false"


def _lists(gold: str) -> Pairs:
    parts = gold.split(", ")
    numeric = parts[0].lstrip("-").isdigit()
    other = "77" if numeric else "zinc"
    yield "the last element dropped", ", ".join(parts[:-1])
    yield "the first element dropped", ", ".join(parts[1:])
    yield "the first element alone", parts[0]
    yield "the last element alone", parts[-1]
    yield "an element added", f"{gold}, {other}"
    yield "an element added in front", f"{other}, {gold}"
    yield "the last element changed", ", ".join([*parts[:-1], other])
    yield "the first element changed", ", ".join([other, *parts[1:]])
    yield "other elements, as many", ", ".join([other] * len(parts))
    yield "the first element repeated", ", ".join([parts[0]] * len(parts))


def _tuples(gold: str) -> Pairs:
    for cause, inner in _lists(gold[1:-1]):
        yield cause, f"({inner})"
    yield "the elements reversed", "(" + ", ".join(reversed(gold[1:-1].split(", "))) + ")"
    yield "empty", "()"


def _dates(gold: str) -> Pairs:
    year, month, day = gold.split("-")
    yield "another year", f"{int(year) + 1}-{month}-{day}"
    yield "another month", f"{year}-{int(month) % 12 + 1:02d}-{day}"
    yield "another day", f"{year}-{month}-{int(day) % 28 + 1:02d}"
    yield "the year alone", year


def _symbols(gold: str) -> Pairs:
    letters = re.sub(r"\W", "", gold)
    yield "the letters alone", letters if letters != gold and not letters.isdigit() else ""
    yield "each sign replaced by a letter", re.sub(r"\W", "q", gold)
    yield "an alternative of a pattern", "a" if gold == "a|b" else ""
    yield "a repetition of a pattern", {"C++": "CCC", "what?": "wha", "x*y": "xxy"}.get(gold, "")
    yield "extended", f"{gold}qq"


def _sentences(gold: str) -> Pairs:
    words = gold.split()
    yield "the beginning", gold[:40]
    yield "the first half", gold[: len(gold) // 2]
    yield "the first word changed", " ".join(["Some", *words[1:]])
    yield "the last word changed", " ".join([*words[:-1], "temperature."])
    yield "the negation", gold.replace(" because ", " not because ", 1)
    yield "the words sorted", " ".join(sorted(words))
    yield "a sentence of another subject", " ".join(["The river"] * 20)


WRONG: Mapping[str, Callable[[str], Pairs]] = MappingProxyType(
    {
        "integers": _integers,
        "decimals": _decimals,
        "fractions": _fractions,
        "latex": _formulas,
        "expressions": _formulas,
        "words": _words,
        "phrases": _phrases,
        "choices": _choices,
        "booleans": _booleans,
        "lists": _lists,
        "names": _lists,
        "tuples": _tuples,
        "dates": _dates,
        "symbols": _symbols,
        "sentences": _sentences,
    }
)
"""The function that generates wrong answers, for each class of gold answers."""
