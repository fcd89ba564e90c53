"""Gold answers of several classes, with other spellings of the same answers, and with wrong answers.

``CLASSES`` names the classes. A *cause* names the kind of spelling or mistake in an answer ("plus sign").
``respelled`` returns right answers: a grader does not have to accept every spelling, but a grader that accepts most
answers in a spelling and rejects the others is inconsistent. ``wrong_answers`` returns answers that are wrong by
construction. ``hedges`` returns texts that contain two gold answers; if a grader accepts such a text for both, it
rewards answers that do not commit to one. Not covered: equal values in another form (``2+3`` for 5), which a grader may
accept on purpose.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from random import Random
from types import MappingProxyType

from rstar2_env.evaluation.audit.wrongs import WRONG, number_of

_INTEGERS = (
    "0 1 2 7 9 10 12 15 24 42 64 99 100 101 123 256 365 1000 1024 4096 12345 65537 99999 -1 -3 -8 -12 -40 -250 -1000"
)
_LONG = {
    "The reaction releases heat because the bonds of the products are stronger than those of the reactants, and the "
    "surplus energy leaves the vessel as radiation and as motion of the surrounding molecules until the temperatures "
    "of the vessel and of the room are equal; this takes about nine {} at normal pressure.": ("minutes", "hours"),
    "Prices in the harbour rose in spring because fewer ships arrived than in the years before, and merchants who had "
    "stored grain waited for the summer market, where the council had promised to pay more to those who sold their "
    "whole stock; the difference was about nine {} a sack.": ("pence", "crowns"),
    "Most owls hunt at night because their ears find prey that makes no more noise than a leaf, and the edges of their "
    "feathers break the flow of air so that the wings stay silent; a pair with young brings about nine {} to the nest "
    "between dusk and dawn.": ("mice", "frogs"),
}
"""Long sentences; each yields two gold answers that differ only in a word near the end."""

CLASSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "integers": tuple(_INTEGERS.split()),
        "decimals": ("0.5", "0.25", "1.5", "2.75", "3.14", "0.001", "0.05", "12.6", "100.25", "-0.5", "-2.25", "99.9",
        "0.125", "1234.5"),
        "fractions": ("1/2", "3/4", "2/3", "5/8", "7/3", "-1/4", "11/12", "22/7", "9/10"),
        "latex": ("\\frac{1}{2}", "\\frac{3}{4}", "\\frac{7}{3}", "\\sqrt{2}", "2\\sqrt{3}", "\\pi", "2\\pi", "x^2+1"),
        "expressions": ("x+1", "2x-3", "x^2-1", "3y+7", "5ab", "a^2+b^2", "4n-1", "(x+1)(x-2)"),
        "words": ("Paris", "London", "Tokyo", "cat", "apple", "blue", "Monday", "oxygen", "Einstein", "Zürich", "naïve",
        "São_Tomé"),
        "phrases": ("New York", "red blood cell", "dog bites man", "the left hand side", "Treaty of Versailles",
        "speed of light", "carbon dioxide"),
        "choices": ("A", "B", "C", "D", "E"),
        "booleans": ("yes", "no", "Yes", "No", "true", "false", "True", "False"),
        "lists": ("1, 2, 3", "2, 5", "3, 7, 11, 20", "4, 9, 16", "10, 20, 30, 40, 50", "6, 1"),
        "names": ("Ada, Grace, Alan", "red, green", "north, east, south, west", "iron, tin, lead"),
        "tuples": ("(1, 2)", "(3, -4)", "(0, 5, 9)", "(7, 12)", "(-2, 6)"),
        "dates": ("2024-01-15", "1999-12-31", "1969-07-20", "2001-10-03"),
        "symbols": ("C++", "a.b", "f(x)", "what?", "[1]", "a|b", "x*y", "$5", "p^q", "{a}", "a\\b"),
        "sentences": tuple(text.format(word) for text, words in _LONG.items() for word in words),
    }
)  # fmt: skip
"""Gold answers for an audit, by class (such as ``integers`` or ``dates``)."""

NUMBERS = ("integers", "decimals")


def golds_of(name: str, seed: int) -> tuple[str, ...]:
    """Return the gold answers of a class in ``CLASSES``; "integers" and "decimals" also get up to ten random ones."""
    chance, fixed = Random(f"{name} {seed}"), CLASSES[name]
    drawn: list[str] = []
    if name == "integers":
        drawn = [str(chance.randint(-999, 99999)) for _ in range(10)]
    elif name == "decimals":
        drawn = [f"{chance.randint(-400, 4000) / 16:g}" for _ in range(10)]
    return (*fixed, *(text for text in dict.fromkeys(drawn) if text not in fixed and (name, "." in text) in _DRAWN))


_DRAWN = {("integers", False), ("decimals", True)}


def respelled(name: str, gold: str) -> Iterator[tuple[str, str]]:
    """Yield (cause, answer) for each other spelling of a gold answer; the cause names the change ("plus sign").

    Args:
        name: The class of the gold answer, a key of ``CLASSES``.
        gold: The gold answer.
    """
    yield "spaces before", f"  {gold}"
    yield "spaces after", f"{gold}  "
    yield "newline after", f"{gold}\n"
    if name in ("words", "phrases", "choices", "booleans", "names"):
        yield "capitals", gold.upper()
        yield "small letters", gold.lower()
        yield "full stop", f"{gold}."
    if name in ("words", "phrases"):
        yield "decomposed letters", unicodedata.normalize("NFD", gold)
    if name in ("phrases", "names", "lists", "tuples"):
        yield "wide spaces", gold.replace(" ", "  ")
    if name in ("lists", "names", "tuples"):
        yield "no spaces", gold.replace(" ", "")
    value = number_of(gold)
    if value is None:
        return
    if name in NUMBERS and value > 0:
        yield "plus sign", f"+{gold}"
    if name == "integers":
        yield "decimal zero", f"{gold}.0"
        yield "thousands", f"{int(gold):,}"
    if name == "decimals":
        yield "trailing zero", f"{gold}0"
        yield "quotient", f"{value.numerator}/{value.denominator}"
    if name == "fractions":
        yield "not reduced", f"{2 * value.numerator}/{2 * value.denominator}"
        yield "LaTeX fraction", f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    if name in NUMBERS:
        yield "dollars", f"${gold}$"
        yield "typographic minus sign", gold.replace("-", "\N{MINUS SIGN}")


def wrong_answers(name: str, golds: Sequence[str], seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield (cause, gold, answer) for answers that are wrong; the cause names the mistake ("a digit appended").

    Args:
        name: The class of the gold answers, a key of ``CLASSES``.
        golds: The gold answers.
        seed: Seed for choosing up to three other gold answers, which serve as wrong answers.
    """
    chance = Random(f"wrong {name} {seed}")
    for gold in golds:
        others = [other for other in golds if differ(gold, other)]
        chance.shuffle(others)
        for other in others[:3]:
            yield "another answer", gold, other
        for cause, answer in WRONG[name](gold):
            if differ(gold, answer):
                yield cause, gold, answer


def hedges(first: str, second: str) -> Iterator[tuple[str, str]]:
    """Yield (cause, text) for texts that state both answers ``first`` and ``second``; the cause names a text's form."""
    yield "two answers, joined by or", f"{first} or {second}"
    yield "two answers, with a comma", f"{first}, {second}"
    yield "two answers, side by side", f"{first} {second}"
    yield "two answers on two lines", f"{first}\n{second}"
    yield "two boxes", f"\\boxed{{{first}}} \\boxed{{{second}}}"
    yield "two marked answers", f"<answer>{first}</answer>\n<answer>{second}</answer>"
    yield "two sentences", f"The answer is {first}. The answer is {second}."
    yield "two answers, separated", f"{first} | {second}; {first} / {second}"
    yield "an answer hidden in a comment", f"<!-- {first} --> {second}"


_DECISIONS = {"yes": True, "true": True, "no": False, "false": False}


def differ(gold: str, answer: str) -> bool:
    """Return whether an answer certainly differs in value from the gold answer; false if uncertain."""
    decided, told = (_DECISIONS.get(plain(text)) for text in (gold, answer))
    if decided is not None and told is not None:
        return decided is not told
    one, other = number_of(gold), number_of(answer)
    if one is not None and other is not None:
        return abs(one - other) > Fraction(1, 1000) * max(abs(one), abs(other))
    return plain(gold) != plain(answer)


def plain(text: str) -> str:
    """Return the text in lower case, without accents, spaces at the ends and a final full stop."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    return " ".join("".join(one for one in folded if not unicodedata.combining(one)).split()).rstrip(".")
