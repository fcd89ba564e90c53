r"""Grades answers in a worker process, by a series of methods from the cheapest to the most expensive.

The methods, in order: equal spelling; multiple choice; comparison of structures (sets, tuples, equations), whose
expressions are evaluated; comparison of words; SymPy. This runs only in a worker process, which may be killed at any
time. Not covered: exact texts, size limits and plain numbers (``api``).

A choice is a letter in any common form, with or without the option's text: ``B``, ``(B)``, ``B.``, ``\text{(B)}``,
``B) 12``, "option B", "the answer is B". If the question lists the options, an answer without a letter may also be an
option's text, or a literal number equal to an option. Without the question, the text after a letter must be a value,
such as 12. Sentences with formulas are compared word by word and formula by formula, without paraphrase.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from rstar2_env.verification.compare import symbolic
from rstar2_env.verification.compare.answers import same_answer
from rstar2_env.verification.compare.conduct import echoes, is_literal, may_be_rounded, work_left
from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.compare.notations import same_notation
from rstar2_env.verification.compare.quantities import ASKS_PERCENT
from rstar2_env.verification.compare.structure import is_approximate, with_identity
from rstar2_env.verification.compare.understood import unknown_word, without_changes
from rstar2_env.verification.read import words
from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.lexer import ReadError, lex
from rstar2_env.verification.read.nodes import BracketGroup, Given, Node, Num, Quantity, Relation, Sym, Words, key, walk
from rstar2_env.verification.read.readings import possible_readings, readings, share
from rstar2_env.verification.read.units import is_measure
from rstar2_env.verification.read.vocabulary import known_words
from rstar2_env.verification.read.words import plain_words, same_text
from rstar2_env.verification.values.ball import TooLargeError
from rstar2_env.verification.verdict import Reason

_PERCENT = re.compile(r"%|\bper ?cent\b", re.IGNORECASE)
_LOOSE_SPACE = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
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
    if kind in ("auto", "choice") and (chosen := same_choice(gold, answer, question, forced=kind == "choice")):
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
    if share(answer) is not None and any(isinstance(tree, Quantity) and is_measure(tree.unit) for tree in gold_trees):
        return Reason.DIFFERENT, "structure"  # "1 in 12" is not 12 inches
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
    """Compare every reading of the gold answer with every reading of the answer.

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


def _accept(
    trees: tuple[Node, Node], rules: Rules, method: str = "structure", *, part: bool = False
) -> tuple[Reason, str]:
    """Return the verdict on an answer that has the same value as the gold answer, according to ``method``.

    With ``part``, the answer is one formula in a sentence; such a formula may be copied from the question.
    """
    question = rules.question
    if (word := unknown_word(*trees, rules.known, question)) is not None:
        return Reason.UNPARSABLE_ANSWER, f"unknown word {word}"
    if (work := work_left(*trees, rules.undone)) is not None:
        return Reason.NO_ANSWER, f"undone {work}"
    if is_approximate(trees[1]) and not (is_approximate(trees[0]) or may_be_rounded(trees[0], question)):
        return Reason.DIFFERENT, "approximation"
    if question and not part and echoes(*trees, question, lambda one, other: same_answer(one, other, rules)):
        return Reason.NO_ANSWER, "echo"
    return Reason.EQUAL, method


def _last_resort(trees: tuple[Node, Node], rules: Rules) -> tuple[Reason, str]:
    """Compare with SymPy if evaluation could not decide."""
    if symbolic.same_symbolic(*trees):
        return _accept(trees, rules, "symbolic")
    work = work_left(*trees, rules.undone)
    return (Reason.DIFFERENT, "symbolic") if work is None else (Reason.NO_ANSWER, f"undone {work}")


def _all_words(trees: tuple[Node, ...]) -> bool:
    return all(isinstance(part, Words | BracketGroup) for tree in trees for part in walk(tree))


def _same_words(gold: str, answer: str, rules: Rules) -> bool:
    if words.same_text(gold, answer):
        return True

    def same_formula(one: str, other: str) -> bool:
        trees, others = possible_readings(one), possible_readings(other)
        if not (trees and others):
            return False
        equal, pair = _compare(trees, others, rules)
        return equal is True and _accept(pair, rules, part=True)[0] is Reason.EQUAL

    return same_prose(gold, answer, same_formula) or (not rules.strict and words.is_contained(gold, answer))


def _spelled(text: str) -> str:
    """Normalize the spelling of a text; remove dollar signs, final full stops, and spaces except between digits."""
    return _LOOSE_SPACE.sub("", clean(text)).replace("$", "").rstrip(".")


def _is_word(text: str) -> bool:
    """Whether a text is one word. As a product of variables, the word "tea" would equal "eat"."""
    return _WORD.fullmatch(text.strip()) is not None


def _is_formula(text: str) -> bool:
    """Whether a text that cannot be read looks like a formula rather than a sentence."""
    return len(words.plain_words(text).split()) < 4 or _BROKEN.search(text) is not None


_DRESS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|textrm|mbox|boxed)\b\*?|[{}$*]|\\[ ,;!]|~")
_LETTER = re.compile(r"\(?\s*([A-J])\s*\)?\s*[.):]?")
_LOWER = re.compile(r"\(?\s*([A-Ja-j])\s*\)?\s*[.):]?")
_OPTION = re.compile(r"(?:\(\s*([A-J])\s*\)|([A-J])(?:\s*[.)]|:\s))\s*(\S.*)", re.DOTALL)
_ANOTHER = re.compile(r"\([A-J]\)|(?<![\w\\^])[A-J](?:[.):]|\s*\Z)", re.ASCII)
"""Pattern of a second letter after a choice: "B) 12 (C) 14" chooses no option."""

_MARK = re.compile(r"(?:\\text\w*\s*\{\s*)?(?:\(([A-J])\)|(?:(?<=[\s{])|\A)([A-J])[.):](?=[\s\d}]))\s*\}?")
"""Pattern of the letter before the text of an option in a question."""

_LINE_END = re.compile(r"\S[^\S\n]*\n")
"""Pattern of the end of the first line that has text: the last option of a question ends there."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")
_SPACE = re.compile(r"\\q?quad(?![a-zA-Z])|\\ |\s+")
_FIRST = re.compile(r"\(?[A-J]\)?(?:\s+\w|\s*[.:)]\s*\(?\w|\s*\()")
_SAID = re.compile(r"(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)\s*(?:is|:)?\s*\(?\s*([A-Ja-j])\s*\)?\.?", re.I)

_OTHERS = re.compile(
    r"\s*[,.;。，]*\s*(?:it\s+)?(?:not|can(?:'t|not)\s+be|isn't|non|nicht|no|不是)\s+[A-J](?:\s*(?:,|or|and|nor|或)\s*[A-J])*\.?\Z"
)
"""Pattern of a denial of other letters after the chosen letter: "B, not A"."""


def letter_of(text: str, *, lower: bool = False) -> str | None:
    """Return the capital letter of a text that only names a choice; ``None`` for other texts.

    Args:
        text: The text.
        lower: Whether a small letter alone, such as ``b``, also names a choice.
    """
    text = _DRESS.sub("", text).strip()
    others = _OTHERS.search(text)
    text = text if others is None else text[: others.start()]
    match = (_LOWER if lower else _LETTER).fullmatch(text) or _SAID.fullmatch(text)
    return None if match is None or (others and match[1].upper() in others[0]) else match[1].upper()


def option_of(text: str) -> tuple[str, str] | None:
    """Return the letter and the option's text of a choice such as ``B) 12``; ``None`` for other texts."""
    match = _OPTION.fullmatch(_DRESS.sub("", text).strip())
    if match is None or _ANOTHER.search(match[3]) is not None:
        return None
    return match[1] or match[2], match[3].strip()


@lru_cache(maxsize=256)
def options_of(question: str) -> dict[str, str]:
    """Return the texts of the options that a question lists, by letter; empty if it lists none.

    Args:
        question: The question, such as "Which is prime? (A) 7 (B) 8".
    """
    marks = list(_MARK.finditer(question))
    first = max((at for at, mark in enumerate(marks) if "A" in mark.groups()), default=len(marks))
    marks = marks[first:]
    if len(marks) < 2 or [mark[1] or mark[2] for mark in marks] != list("ABCDEFGHIJ"[: len(marks)]):
        return {}
    after = _LINE_END.search(question, marks[-1].end())
    ends = [*(mark.start() for mark in marks[1:]), len(question) if after is None else after.start() + 1]
    return {
        mark[1] or mark[2]: _SPACE.sub(" ", question[mark.end() : end]).strip(" $,;").rstrip(" $,;.")
        for mark, end in zip(marks, ends, strict=True)
    }


def _is_text_of(text: str, option: str) -> bool:
    """Whether a text agrees with an option's text: both have the same words, value or comparison."""
    if same_text(option, text) or same_notation(option, text):
        return True
    return not {*map(key, possible_readings(text))}.isdisjoint(map(key, possible_readings(option)))


def _values(text: str) -> tuple[Node, ...]:
    """Return the trees of a text (see ``possible_readings``) that contain neither words nor conditions."""
    return tuple(
        tree for tree in possible_readings(text) if not any(isinstance(part, Words | Given) for part in walk(tree))
    )


def _same_value(gold: str, answer: str, rules: Rules) -> bool | None:
    """Return whether two texts have the same value; ``None`` if one of them is not a value."""
    pairs = product(_values(gold), _values(answer))
    try:
        results = [same_answer(*pair, rules) for pair in pairs]
    except TooLargeError:
        return None
    return True if True in results else None if None in results or not results else False


def _is_option_text(text: str, letter: str, gold: str, question: str | None) -> bool:
    """Whether the text after a letter can be the text of that letter's option.

    If the question lists this option, the text must agree with it. Otherwise the text must occur in the gold answer or
    the question, or be a value.
    """
    options = options_of(question or "")
    if any(_is_text_of(text, option) for option in options.values()):
        return letter in options and _is_text_of(text, options[letter])
    known = known_words(gold, question)
    if letter in options:
        rules = Rules(known=known, question=question)
        same = _same_value(options[letter], text, rules) or _same_value(text, options[letter], rules)
        if same is not None:
            return same  # "(B) 0.5" contradicts an option B of 3/4; "(C) 0.33" rounds an option C of 1/3
    plain = plain_words(text)
    if plain and any(f" {plain} " in f" {plain_words(other)} " for other in (gold, (question or "").replace("?", " "))):
        return True
    try:
        tree, first = readings(text)[0], lex(clean(text))[0]
    except ReadError:
        return False
    worded = first.kind == "sep" or text.isalpha() or any(isinstance(part, Words | Given) for part in walk(tree))
    return not worded and unknown_word(None, tree, known, question) is None


def _chosen(answer: str, options: Mapping[str, str], rules: Rules) -> list[str]:
    """Return the letters of the options that an answer without a letter may mean."""
    stands = [letter for letter, text in options.items() if _is_text_of(answer, text)]
    values = _values(answer)
    literal = any(is_literal(tree.value if isinstance(tree, Quantity) else tree) for tree in values)
    if stands or not literal:
        return stands
    return [letter for letter, text in options.items() if _same_value(text, answer, rules) or _has_number(text, values)]


def _has_number(option: str, values: tuple[Node, ...]) -> bool:
    """Whether an option has one of ``values`` next to a unit, a variable or words, such as 5 in "5 mV" or "x > 5"."""
    found: set[Fraction | str] = {Fraction(number) for number in _NUMBER.findall(option)}
    trees = [list(walk(tree)) for tree in possible_readings(option)]
    if any(not any(isinstance(part, Sym | Relation | Quantity | Words | Given) for part in parts) for parts in trees):
        return False  # the whole option is a number
    found.update(key(part) for parts in trees for part in parts)
    return any(key(value) in found or (isinstance(value, Num) and value.value in found) for value in values)


def same_choice(gold: str, answer: str, question: str | None = None, *, forced: bool) -> Reason | None:
    """Compare two texts as answers to a multiple-choice question; return ``None`` if the gold answer is not a choice.

    Args:
        gold: The gold answer.
        answer: The answer.
        question: The question, which may list the options; ``None`` if it is not known.
        forced: Whether the problem is known to be multiple choice; the case of the letter is then ignored.
    """
    wanted, stated = _choice(gold, lower=forced)
    if not wanted:
        return Reason.UNPARSABLE_GOLD if forced else None
    said, text = _choice(answer, lower=forced)
    if text and not _is_option_text(text, said, gold, question):
        return Reason.UNPARSABLE_ANSWER  # such as "(B) is wrong"
    if not said:
        options = options_of(question or "")
        stands = _chosen(answer, options, Rules(known=known_words(gold, question), question=question))
        if len(stands) == 1 and wanted in options:
            said = stands[0]
        elif forced or len(stands) > 1:
            return Reason.UNPARSABLE_ANSWER
        elif stated or _FIRST.match(_DRESS.sub("", answer).strip()) is None:
            return None  # otherwise several letters, or a letter that begins a sentence
    return Reason.EQUAL if said == wanted else Reason.DIFFERENT


def _choice(text: str, *, lower: bool) -> tuple[str, str]:
    """Return the letter of a choice, and the text of the option after it; both are empty if there is none."""
    letter = letter_of(text, lower=lower)
    return (letter, "") if letter is not None else option_of(text) or ("", "")


_TEXT = re.compile(r"\\(?:text|textrm|mbox|mathrm|textbf|textit)\s*\{([^{}]*)\}")
_DOLLARS = re.compile(r"(?<!\\)\$([^$]*)\$")
_PLAIN_WORD = re.compile(r"(?<![\\a-zA-Z])([^\W\d_]{2,})(?![a-zA-Z])")
_FORMULA_EDGES = " .,;:!\"'"


def segments(text: str) -> list[tuple[str, bool]]:
    """Split a sentence into runs of words and formulas; return the text of each, and whether it is a formula."""
    dollars = _DOLLARS.search(text) is not None
    text = text if dollars else clean(text)
    pattern = _DOLLARS if dollars else _TEXT if _TEXT.search(text) else _PLAIN_WORD
    result: list[tuple[str, bool]] = []
    for at, part in enumerate(pattern.split(text)):
        formula = dollars is (at % 2 == 1)  # the matches of the pattern are at the odd places
        content = part.strip(_FORMULA_EDGES) if formula else plain_words(part)
        if not content:
            continue
        if result and not formula and not result[-1][1]:
            content = f"{result.pop()[0]} {content}"
        result.append((content, formula))
    return result


def same_prose(gold: str, answer: str, same_formula: Callable[[str, str], bool]) -> bool:
    """Return whether two sentences have the same words and the same formulas, in the same order.

    Args:
        gold: The gold sentence.
        answer: The sentence to grade.
        same_formula: Function that compares a formula of the gold sentence with one of the answer.
    """
    one, other = segments(gold), segments(answer)
    if len(one) != len(other) or all(formula for _, formula in one):
        return False
    return all(
        left == right or (left[1] and right[1] and same_formula(left[0], right[0]))
        for left, right in zip(one, other, strict=True)
    )
