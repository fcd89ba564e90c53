"""Finds unknown words in the units, labels and names of an answer; an answer with such a word counts as wrong.

Not covered: conditions (``conditions.remarks_agree``), and answers in words alone (``words``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rstar2_env.verification.read import names
from rstar2_env.verification.read.nodes import Given, Node, Quantity, Relation, Sym, Words, walk
from rstar2_env.verification.read.units import read_unit
from rstar2_env.verification.read.vocabulary import names_things, of_percent, unknown_in_label

_NAME = re.compile(r"[a-z]{4,}|[^\x00-\x7f]{2,}")
_IN_NAMES = names.ACCENTS | names.GREEK | names.FUNCTIONS.keys() | {"angle", "triangle"}


def unknown_word(gold: Node | None, answer: Node, known: frozenset[str], question: str | None) -> str | None:
    """Return an unknown word of an answer; ``None`` if all words are known.

    Args:
        gold: The gold answer; ``None`` if it is not known.
        answer: The answer.
        known: Words that may stand next to a number, from ``vocabulary.known_words``.
        question: The question; ``None`` if it is not known.
    """
    # "London = Paris" names two answers: the label of a word must be the name of a quantity, or a noun of the question.
    noun = isinstance(answer, Relation) and isinstance(answer.sides[-1], Words) and not isinstance(gold, Relation)
    for text in _labels(answer):
        if (word := unknown_in_label(text, known, question, noun=noun)) is not None:
            return word
    for part in walk(answer):
        if isinstance(part, Quantity) and set(part.unit) == {"'"} and not _is_measured(gold, part.unit, known):
            return part.unit  # a stray quotation mark
        if isinstance(part, Quantity) and read_unit(part.unit) is None and not _is_mark(part.unit):
            percent = isinstance(part.value, Quantity) and part.value.unit == "%"
            if not names_things(part.unit, known | of_percent(question) if percent else known):
                return part.unit
        elif isinstance(part, Sym):
            named: list[str] = _NAME.findall(part.name)
            for word in named:
                if word not in _IN_NAMES and unknown_in_label(word, known, question) is not None:
                    return word
    return None


def _labels(answer: Node) -> Iterator[str]:
    """Iterate over the words on every side of a relation except its last side."""
    for part in walk(answer):
        if isinstance(part, Relation):
            for inner in (inner for side in part.sides[:-1] for inner in walk(side)):
                if isinstance(inner, Words | Given):
                    yield inner.text if isinstance(inner, Words) else inner.condition


def _is_measured(gold: Node | None, sign: str, known: frozenset[str]) -> bool:
    """Whether a sign, such as ``'`` for feet, is a unit: the gold has a unit of its kind, or a known word names it."""
    unit = read_unit(sign)
    golds = [read_unit(part.unit) for part in walk(gold) if isinstance(part, Quantity)] if gold is not None else []
    if any(one is not None and unit is not None and one.dimension == unit.dimension for one in golds):
        return True
    return any(len(word) > 2 and read_unit(word) == unit for word in known)


def _is_mark(unit: str) -> bool:
    """Whether a unit has no letters, like ``'``, or is "am" or "pm"."""
    return not any(char.isalpha() for char in unit) or unit.lower() in ("am", "pm")
