"""Finds unknown words, which make an answer wrong, and reads statements whose value depends on the question.

A label that names a variable or a point ("the area of A") must name the same thing as the gold answer's label or the
question; otherwise the label counts as unknown.

The question "By what percent did sales fall?" makes "sales fell by 8%" mean 8 %; the question "By what percent did
sales change?" makes it mean -8 %. If the question names no direction or several, the statement has no value. If the
question asks for the ratio of boys to girls, "the ratio of girls to boys is 3:2" means 2:3. Not covered: conditions
(``conditions.remarks_agree``), and answers that consist only of words (``words``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from rstar2_env.verification.read import names
from rstar2_env.verification.read.nodes import (
    Apply,
    Const,
    Given,
    Node,
    Quantity,
    Relation,
    Sym,
    Words,
    negative,
    rebuild,
    symbols,
    walk,
)
from rstar2_env.verification.read.units import read_unit
from rstar2_env.verification.read.vocabulary import change_said, direction, names_things, of_percent, unknown_in_label

_NAME = re.compile(r"[a-z]{4,}|[^\x00-\x7f]{2,}")
_ASKS = re.compile(
    r"\b(?:find|determine|compute|calculate|evaluate|give|state|express|write|list|show|prove|simplify|solve(?:\s+for)?"
    r"|(?:what|which|how)(?:'s|\s+(?:is|are|was))?)\b([^.?!;:,]*)",
    re.IGNORECASE,
)
"""Pattern of a request or question word ("find"); its group is the text that follows, such as "the area of A"."""
_DETAILS = re.compile(r"\b(?:if|when|where|such|so|given|with|for|in|that|whose|as|by|using|from|to)\b.*", re.DOTALL)
_ADD_NOTHING = names.VERBS | names.LISTS["sets of numbers"] | {"the", "our", "my", "of"}
"""Words that add nothing to a label: "the value of x" means the same as "x"."""
_IN_NAMES = names.ACCENTS | names.GREEK | names.FUNCTIONS.keys()


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
    if (label := _misnamed(gold, answer, question)) is not None:
        return label
    for part in walk(answer):
        if isinstance(part, Quantity) and set(part.unit) == {"'"} and not _is_measured(gold, part.unit, known):
            return part.unit  # a stray quotation mark
        if isinstance(part, Quantity) and read_unit(part.unit) is None and any(map(str.isalpha, part.unit)):
            percent = isinstance(part.value, Quantity) and part.value.unit == "%"
            if not names_things(part.unit, known | of_percent(question) if percent else known):
                return part.unit
        elif isinstance(part, Sym):
            named: list[str] = _NAME.findall(part.name)
            for word in named:
                if word not in _IN_NAMES and unknown_in_label(word, known, question) is not None:
                    return word
    return None


def _misnamed(gold: Node | None, answer: Node, question: str | None) -> str | None:
    """Return a label such as "area of ABC" that neither gold answer nor question uses; ``None`` if there is none."""
    sides = [side for part in walk(answer) if isinstance(part, Relation) for side in part.sides[:-1]]
    said = [side.text for side in sides if isinstance(side, Words)]
    named = [label for label in said if _letters(label)]
    if not named:
        return None
    about, asked = meaning(named[0]), _asked(question or "")
    labels = [part.sides[0] for part in walk(gold) if isinstance(part, Relation)] if gold is not None else []
    if len(said) > 1 or len(labels) > 1:
        return named[0]  # with several values, only labels that are variables can be matched to the values
    if not labels:
        return None if about == asked else named[0]
    label = labels[0]
    wanted = meaning(label.text) if isinstance(label, Words) else symbols(label)
    return None if about == wanted or (about == asked and _letters(named[0]) == symbols(label)) else named[0]


def asking_clauses(question: str) -> list[str]:
    """Return the phrases that say what a question asks for: " the area of A" from "Find the area of A if ..."."""
    return [_DETAILS.sub("", clause) for clause in _ASKS.findall(question)]


def _asked(question: str) -> frozenset[str]:
    """Return the words and letters that say what a question asks for; empty if it asks for a formula."""
    clauses = asking_clauses(question)
    clause = clauses[-1].replace("$", " ") if clauses else ""
    plain = re.fullmatch(r"(?:[^\W\d_]|\s|\\(?=[a-zA-Z]))*", clause)
    return meaning(clause.replace("\\", "")) if plain else frozenset()


def meaning(label: str) -> frozenset[str]:
    """Return the words and letters that identify the quantity of a label: x in "the value of x"."""
    words = {word.lower() for word in label.split() if not _letters(word)}
    return _letters(label) | (words - _ADD_NOTHING - {"a", "an"})


def _letters(label: str) -> frozenset[str]:
    """Return the letters in a label, including those of names such as ABC, but not the article "a"."""
    found: set[str] = set()
    words = label.split()
    for at, word in enumerate(words):
        article = (word == "a" or (word == "A" and at == 0)) and len("".join(words[at + 1 : at + 2])) > 1
        if (len(word) == 1 and word.isascii() and word.isalpha() and not article) or word in names.GREEK:
            found.add(word)
        elif word.isupper() and word.isascii() and unknown_in_label(word, frozenset(), None) is not None:
            found.update(filter(str.isalpha, word))
    return frozenset(found)


def _labels(answer: Node) -> Iterator[str]:
    """Yield the words in all sides but the last of each relation, and words that a side spells: ``no`` for n * o."""
    for part in walk(answer):
        if isinstance(part, Relation):
            for inner in (inner for side in part.sides[:-1] for inner in walk(side)):
                if isinstance(inner, Words | Given):
                    yield inner.text if isinstance(inner, Words) else inner.condition
            yield from names.WORDS.intersection(map(_spelled, part.sides))  # "no = 12" is not the product of n and o


def _spelled(node: Node) -> str:
    """Return the letters of a product of variables as one word; empty for other nodes."""
    factors = node.args if isinstance(node, Apply) and node.op == "mul" else ()
    return "".join(part.name if isinstance(part, Sym | Const) else " " for part in factors)


def _is_measured(gold: Node | None, sign: str, known: frozenset[str]) -> bool:
    """Whether a sign such as ``'`` (feet) is a unit: it has the dimension of a gold unit, or a known word names it."""
    unit = read_unit(sign)
    golds = [read_unit(part.unit) for part in walk(gold) if isinstance(part, Quantity)] if gold is not None else []
    if any(one is not None and unit is not None and one.dimension == unit.dimension for one in golds):
        return True
    return any(len(word) > 2 and read_unit(word) == unit for word in known)


_RATIO_OF = re.compile(r"\b(?:ratio|odds|proportions?) of ([^.?!,;:]+)", re.IGNORECASE)
_CHANGES = frozenset({"change", "changes", "changed", "difference", "differ"})


def without_changes(node: Node, question: str | None) -> Node:
    """Replace each statement of a change in an answer, such as "sales fell by 8%", by the signed value of the change.

    If the question does not ask for a change, or names two directions, only the words of the statement remain, without
    a value. The terms of a ratio with a label ("girls to boys") are put in the order for which the question asks.

    Args:
        node: The tree of an answer.
        question: The question; ``None`` if it is not known.
    """

    def change(part: Node) -> Node | None:
        match part:
            case Relation(ops=("=",), sides=(Words(text=said), value)) if (found := change_said(said)) is not None:
                subject, sign = found
            case Quantity(value=Quantity(unit="%") as value, unit=said) if sign := direction(said.lower()):
                subject = ""
            case Relation(ops=("=",), sides=(Words(text=said), value)) if order := _other_order(said, question or ""):
                match value:
                    case Apply(op="ratio" | "div" as op, args=terms) if len(terms) == len(order):
                        return Relation(("=",), (Words(said), Apply(op, tuple(terms[at] for at in order))))
                return Words(said)
            case _:
                return None
        asked = _direction_asked(question or "")
        if asked is None:
            return Words(said)
        value = value if sign == asked else negative(value)
        return Relation(("=",), (Words(subject), value)) if subject else value

    return rebuild(node, change)


def _other_order(label: str, question: str) -> list[int]:
    """Return the positions of the parts in a ratio's label, in the order in which a question asks for the parts.

    The label "girls to boys" and a question for the ratio of boys to girls give [1, 0]. Empty if the order is the same,
    or if the question asks for no ratio of these parts.
    """
    parts = [meaning(part) for part in label.split(" of ", 1)[-1].split(" to ")]
    for asked in reversed(_RATIO_OF.findall(question)):
        wanted = [meaning(part) for part in asked.split(" to ")]
        order = [at for name in wanted for at, part in enumerate(parts) if part and part <= name]
        if sorted(order) == list(range(len(parts))):
            return order if order != sorted(order) else []
    return []


@lru_cache(maxsize=256)
def _direction_asked(question: str) -> int | None:
    """Return the direction of change that a question asks for: 1 for a rise or for any change, -1 for a fall.

    Returns:
        ``None`` if the question asks for no change, or names two directions.
    """
    for clause in reversed(asking_clauses(question)):
        words = clause.lower().split()
        if found := {direction(word) for word in words} - {0}:
            return found.pop() if len(found) == 1 else None
        if not _CHANGES.isdisjoint(words):
            return 1
    return None
