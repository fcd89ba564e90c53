"""Reads conditions as relations, from the text after an answer ("for all integers n >= 2") or from a question.

Covered: relations, membership in a set, and the words for signs, parity and sets of numbers, each about one or several
variables. Not covered: other words ("if n is prime"); a text with such a word is not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from rstar2_env.verification.compare.echo import formulas
from rstar2_env.verification.read import names
from rstar2_env.verification.read.combine import is_interval
from rstar2_env.verification.read.names import LISTS
from rstar2_env.verification.read.nodes import (
    INEQUALITIES,
    ZERO,
    Apply,
    BracketGroup,
    Const,
    Node,
    Num,
    Relation,
    Sym,
    symbols,
)
from rstar2_env.verification.read.readings import possible_readings

_WORD = re.compile(r"(?<![\\a-zA-Z])[^\W\d_]{2,}|[^\x00-\x7f]")
_ARTICLE = re.compile(r"(?<![\\a-zA-Z])a (?=[a-zA-Z]{2})")
_NON = re.compile(r"\bnon[- ]\s*(?=negative|zero|positive)", re.IGNORECASE)
_SETS = {"integer": "Z", "natural": "N", "whole": "N", "rational": "Q", "real": "R", "complex": "C", "number": "R"}
_SIGNS = {"positive": ">", "negative": "<", "nonnegative": ">=", "nonpositive": "<=", "nonzero": "!="}
_PARITIES = {"odd": 1, "even": 0}
_ADJECTIVES = frozenset({*_SIGNS, *_PARITIES})
_KNOWN = LISTS["around conditions"] | LISTS["sets of numbers"] | _ADJECTIVES
_NUMBER_SET = re.compile(
    r"\\in\s*\\mathbb\s*\{\s*(?P<name>[ZNQRC])\s*\}"
    r"(?:\s*[\^_]\s*\{?\s*(?:[+*\dnm]|(?:>=?|!=)\s*0)(?:\s*\})?)*(?!\s*[\^_\\])"
)
"""Pattern of a set of numbers in a formula, also ``Z^+`` and ``Q_{>0}``."""

_LETTER = r"\$?(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])\$?"
_LETTERS = rf"(?P<letters>{_LETTER}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){_LETTER})*)"
_KIND = (
    r"(?P<kind>(?:(?:non-?)?(?:positive|negative|zero|odd|even|real|rational|complex|whole|natural)\s+)*"
    r"(?:integers?|numbers?|reals)|(?:non-?)?(?:positive|negative|zero)|odd|even)"
)
_SAID = (
    re.compile(rf"\b{_KIND}\s+{_LETTERS}"),
    re.compile(rf"{_LETTERS}\s+(?:is|are|be|denotes?)\s+(?:(?:an?|any|all|both)\s+)*{_KIND}\b"),
)
"""Pattern of a condition in the words of a question: "a positive integer n", "x and y are nonzero"."""

_DOMAIN = re.compile(
    r"(?<![\\a-zA-Z])(?P<name>[a-zA-Z])(?:\([a-z]\))?"
    r"(?:\s*(?:\\colon|:)(?P<arrow>)|\$?\s+(?:(?:is|be)\s+)?(?:defined\s+)?on\s+(?:the\s+interval\s+)?\$?)\s*"
    r"(?:\\mathbb\s*(?:\{\s*R\s*\}|R)(?P<sign>\s*[\^_]\s*\{?\s*(?:\+|(?:>=?|\\geq?)\s*0)\s*\}?)"
    r"|(?P<interval>\\?[(\[][^()\[\]$]*,[^()\[\]$]*[)\]]))"
    r"(?(arrow)\s*(?:\\to|\\rightarrow|→|->))"
)
"""Pattern of a function and its domain: ``f: (0, \\infty) \\to``, ``f: \\mathbb{R}^+ \\to``, "f on (0, 1)"."""


@lru_cache(maxsize=256)
def relations_of(text: str) -> tuple[Relation | BracketGroup, ...] | None:
    """Return the relations of a condition; ``None`` if a part of it is not understood.

    A set of numbers becomes a relation such as ``k in Z`` if a variable is named, and no relation otherwise. Conditions
    joined by "or" (``x < 0 or x > 1``) become one list.

    Args:
        text: The condition as the parser returns it, with the words around it.
    """
    text = _NON.sub("non", _ARTICLE.sub("", text))
    words = {word.lower() for word in _WORD.findall(text)} - {"or"} - names.GREEK
    if not words <= _KNOWN or "not" in words or text.split()[0].lower() in ("is", "are"):
        return None
    members: list[tuple[str, str]] = []

    def member(match: re.Match[str]) -> str:
        members.append((text[: match.start()].split()[-1], match["name"]))
        return ""

    formula = _NUMBER_SET.sub(member, text) if "\\in" in text else text
    formula = " ".join(part for part in formula.split() if part.lower() not in _KNOWN - {"and"})
    formula = formula.strip().removesuffix("and").strip()
    if not formula:
        named = bool(words & LISTS["sets of numbers"]) and "if" not in words
        return () if named and not words & _ADJECTIVES else None
    if not (trees := possible_readings(formula)):
        return None
    tree = trees[0]
    joined = isinstance(tree, BracketGroup) and not tree.open and tree.close != "or"
    parts: Iterable[Node] = tree.items if joined and isinstance(tree, BracketGroup) else (tree,)
    relations: list[Relation | BracketGroup] = []
    for part in parts:
        if isinstance(part, Relation) or (isinstance(part, BracketGroup) and part.close == "or"):
            relations.append(part)
        elif not isinstance(part, Sym):
            return None  # such as "for 5"
    letters = [Sym(name) for name in sorted(symbols(tree))]
    if len(letters) > 1 and relations and words & _ADJECTIVES:
        return None
    said = [relation for letter in letters for relation in _of_words(letter, words)]
    if not (relations or said or members):
        return None  # such as "for x"
    declared = [Relation(("in",), (Sym(name), Const(kind))) for name, kind in members if name.isalnum()]
    return (*declared, *said, *relations)


def _of_words(letter: Sym, words: set[str]) -> Iterable[Relation]:
    """Iterate over the relations, such as ``n > 0``, that words such as "positive" state about a letter."""
    kinds = [_SETS[word.removesuffix("s")] for word in words if word.removesuffix("s") in _SETS]
    for kind in sorted(set(kinds) - {"R"} or set(kinds)):
        # "positive integers" become the set N; "positive reals" become an inequality.
        natural = kind == "Z" and words & {"positive", "nonnegative"}
        yield Relation(("in",), (letter, Const("N" if natural else kind)))
    for word in sorted(words & _SIGNS.keys()):
        yield Relation((_SIGNS[word],), (letter, ZERO))
    for word in sorted(words & _PARITIES.keys()):
        yield Relation(("=",), (Apply("mod", (letter, Num(Fraction(2)))), Num(Fraction(_PARITIES[word]))))


@lru_cache(maxsize=256)
def stated(question: str) -> tuple[Relation | BracketGroup, ...]:
    """Return the conditions that a question states: inequalities, memberships in sets, and values of variables.

    Args:
        question: The question.
    """
    found: list[Relation | BracketGroup] = [
        node for node in formulas(question) if isinstance(node, Relation) and _is_condition(node)
    ]
    for pattern in _SAID:
        for match in pattern.finditer(question):
            letters = re.findall(r"[a-zA-Z]", re.sub(r"\band\b", " ", match["letters"]))
            found += relations_of(f"for {match['kind']} {' and '.join(letters)}") or ()
    return tuple(found)


@lru_cache(maxsize=256)
def domain_stated(question: str, function: str, variable: str) -> tuple[Relation, ...]:
    """Return the condition on a variable that follows from a function's domain in a question; empty if none is stated.

    Args:
        question: The question; if it states two domains of the function, neither counts.
        function: The letter of the function.
        variable: The variable.
    """
    found = {match["sign"] or match["interval"] for match in _DOMAIN.finditer(question) if match["name"] == function}
    if len(found) != 1:
        return ()
    said = "".join(found.pop().split())
    if said[0] in "^_":
        positive = ">0" in said or said.startswith(("^+", "^{+"))
        return (Relation((">" if positive else ">=",), (Sym(variable), ZERO)),)
    intervals = filter(is_interval, possible_readings(said)[:1])
    return tuple(Relation(("in",), (Sym(variable), interval)) for interval in intervals)


def _is_condition(node: Relation) -> bool:
    """Whether a relation in a question is a condition or gives a letter a value; other relations are definitions."""
    if node.ops == ("=",):
        return isinstance(node.sides[0], Sym) and not symbols(node.sides[1])
    return set(node.ops) <= {*INEQUALITIES, "in"}
