"""Grades answers in a worker process, by a series of methods from the cheapest to the most expensive.

The methods, in order: equal spelling; multiple choice; comparison of structures (sets, tuples, equations), whose
expressions are evaluated; comparison of words; SymPy. This runs only in a worker process, which may be killed at any
time. Not covered: exact texts, size limits and plain numbers (``api``).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from rstar2_env.verification.compare import symbolic
from rstar2_env.verification.compare.answers import same_answer
from rstar2_env.verification.compare.changes import without_changes
from rstar2_env.verification.compare.choice import option_of, same_choice
from rstar2_env.verification.compare.conduct import may_be_rounded, work_left
from rstar2_env.verification.compare.echo import echoes
from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.compare.linear import with_identity
from rstar2_env.verification.compare.notations import same_notation
from rstar2_env.verification.compare.prose import same_prose
from rstar2_env.verification.compare.quantities import ASKS_PERCENT
from rstar2_env.verification.compare.structure import is_approximate
from rstar2_env.verification.compare.understood import unknown_word
from rstar2_env.verification.read import words
from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.nodes import BracketGroup, Node, Quantity, Words, walk
from rstar2_env.verification.read.readings import possible_readings, share
from rstar2_env.verification.read.units import read_unit
from rstar2_env.verification.read.vocabulary import known_words
from rstar2_env.verification.values.ball import TooLargeError
from rstar2_env.verification.verdict import Reason

on_load = symbolic.on_load

_PERCENT = re.compile(r"%|\bper ?cent\b", re.IGNORECASE)
_SPACE = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
_WORD = re.compile(r"(?=[a-z]*[aeiou])[a-z]{3,}")
_BROKEN = re.compile(r"\\(?!text|mathrm|textbf|mbox|quad|[ ,;!%$&#_{}])")


def grade_request(request: dict[str, Any]) -> tuple[str, str]:
    """Grade a request made by ``VerifyOptions.request``; return the reason and the method of the verdict."""
    gold, answer = str(request["gold"]), str(request["answer"])
    if request.get("alone") == "math-verify":
        return symbolic.math_verify_alone(gold, answer)
    tolerance, question = request["tolerance"], request["question"]
    rules = Rules(
        tolerance=None if tolerance is None else Fraction(tolerance),
        strict=request["strict"],
        undone=request["undone"],
        percent=bool(question and _PERCENT.search(answer) and ASKS_PERCENT.search(question)),
        known=known_words(gold, question),
        question=question,
    )
    reason, method = grade(gold, answer, rules, kind=request["kind"])
    return reason.value, method


def grade(gold: str, answer: str, rules: Rules, *, kind: str = "auto") -> tuple[Reason, str]:
    """Grade an answer against a gold answer.

    Args:
        gold: The gold answer, without its box.
        answer: The answer, without its box.
        rules: The rules of the comparison; if they have the question, an expression copied from it gets the reason
            ``no_answer``.
        kind: How to read both texts: "auto", "number", "choice" or "words".

    Returns:
        The reason for the verdict, and the name of the method that decided.
    """
    answer, question = words.without_frame(answer), rules.question
    if _spelled(gold) == _spelled(answer) != "":
        return Reason.EQUAL, "text"
    if (
        kind in ("auto", "choice")
        and (chosen := same_choice(gold, answer, question, forced=kind == "choice")) is not None
    ):
        return chosen, "choice"
    if kind == "auto" and (same := same_notation(gold, answer)) is not None:
        return (Reason.EQUAL if same else Reason.DIFFERENT), "notation"
    if kind == "words" or (_is_word(gold) and _is_word(answer)):
        return (Reason.EQUAL if _same_words(gold, answer, rules) else Reason.DIFFERENT), "words"
    if kind == "auto" and (option := option_of(gold)) is not None:
        gold = option[1]
    gold_trees, answer_trees = (
        tuple(without_changes(tree, question) for tree in possible_readings(text)) for text in (gold, answer)
    )
    if share(answer) is not None and any(_is_measure(tree) for tree in gold_trees):
        return Reason.DIFFERENT, "structure"
    if gold_trees and answer_trees:
        result, trees = _compare(gold_trees, answer_trees, rules)
        if result is True:
            return _accept(trees, rules)
        if result is False and not _all_words(gold_trees):
            return Reason.DIFFERENT, "structure"
    if _same_words(gold, answer, rules):
        return Reason.EQUAL, "words"
    if gold_trees and answer_trees:
        return _last_resort(trees, rules) if result is None else (Reason.DIFFERENT, "words")
    if not gold_trees and _is_formula(gold):
        return Reason.UNPARSABLE_GOLD, "reader"
    if not answer_trees and _is_formula(answer):
        return Reason.UNPARSABLE_ANSWER, "reader"
    return Reason.DIFFERENT, "words"


def _compare(
    gold_trees: tuple[Node, ...], answer_trees: tuple[Node, ...], rules: Rules
) -> tuple[bool | None, tuple[Node, Node]]:
    """Compare every reading of the gold with every reading of the answer.

    Returns:
        The result, and the equal pair of readings; if there is none, the first pair.
    """
    unknown = False
    for one in gold_trees:
        for other in answer_trees:
            gold, answer = with_identity(one, other), with_identity(other, one)
            result = same_answer(gold, answer, rules)
            if result:
                return True, (gold, answer)
            unknown = unknown or result is None
    return (None if unknown else False), (gold_trees[0], answer_trees[0])


def _accept(trees: tuple[Node, Node], rules: Rules, method: str = "structure") -> tuple[Reason, str]:
    """Check the form of an answer of equal value; return its verdict, which ``method`` found."""
    question = rules.question
    if (word := unknown_word(*trees, rules.known, question)) is not None:
        return Reason.UNPARSABLE_ANSWER, f"unknown word {word}"
    work = work_left(*trees, rules.undone)
    if work is not None:
        return Reason.NO_ANSWER, f"undone {work}"
    if is_approximate(trees[1]) and not (is_approximate(trees[0]) or may_be_rounded(trees[0], question)):
        return Reason.DIFFERENT, "approximation"
    if question and echoes(*trees, question, lambda one, other: same_answer(one, other, rules)):
        return Reason.NO_ANSWER, "echo"
    return Reason.EQUAL, method


def _last_resort(trees: tuple[Node, Node], rules: Rules) -> tuple[Reason, str]:
    """Compare with SymPy if evaluation could not decide."""
    if symbolic.same_symbolic(*trees):
        return _accept(trees, rules, "symbolic")
    work = work_left(*trees, rules.undone)
    return (Reason.DIFFERENT, "symbolic") if work is None else (Reason.NO_ANSWER, f"undone {work}")


def _is_measure(node: Node) -> bool:
    """Whether a node has a unit of measurement, such as ``12 in``; a share such as "1 in 12" cannot equal it."""
    unit = read_unit(node.unit) if isinstance(node, Quantity) else None
    return unit is not None and unit.dimension != ()


def _all_words(trees: tuple[Node, ...]) -> bool:
    return all(isinstance(part, Words | BracketGroup) for tree in trees for part in walk(tree))


def _same_words(gold: str, answer: str, rules: Rules) -> bool:
    if words.same_text(gold, answer):
        return True

    def same_formula(one: str, other: str) -> bool:
        trees, others = possible_readings(one), possible_readings(other)
        return bool(trees and others) and _compare(trees, others, rules)[0] is True

    if same_prose(gold, answer, same_formula):
        return True
    return not rules.strict and words.is_contained(gold, answer)


def _spelled(text: str) -> str:
    """Normalize the spelling of a text; remove dollars, final full stops, and spaces except those between digits."""
    return _SPACE.sub("", clean(text)).replace("$", "").rstrip(".")


def _is_word(text: str) -> bool:
    """Whether a text is one word; it is not read as a product of variables, in which "tea" would equal "eat"."""
    return _WORD.fullmatch(text.strip()) is not None


def _is_formula(text: str) -> bool:
    """Whether a text that cannot be read looks like a formula rather than a sentence."""
    return len(words.plain_words(text).split()) < 4 or _BROKEN.search(text) is not None


__all__ = ["TooLargeError", "grade", "grade_request", "on_load"]
