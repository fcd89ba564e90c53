r"""Compares answers to multiple-choice questions: a letter in any common form, with or without the option's text.

Covered: ``B``, ``(B)``, ``B.``, ``\text{(B)}``, ``B) 12``, "option B", "the answer is B". If the question lists the
options, an answer without a letter may also be an option's text, or a literal number equal to an option. Not covered:
checks of an option's text if the question is not known; the text after a letter must then be a value, such as 12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import product

from rstar2_env.verification.compare.answers import same_answer
from rstar2_env.verification.compare.conduct import is_literal
from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.compare.notations import same_notation
from rstar2_env.verification.compare.understood import unknown_word
from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.lexer import ReadError, lex
from rstar2_env.verification.read.nodes import Given, Node, Num, Quantity, Relation, Sym, Words, key, walk
from rstar2_env.verification.read.readings import possible_readings, readings
from rstar2_env.verification.read.vocabulary import known_words
from rstar2_env.verification.read.words import plain_words, same_text
from rstar2_env.verification.values.ball import TooLargeError
from rstar2_env.verification.verdict import Reason

_DRESS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|textrm|mbox|boxed)\b\*?|[{}$*]|\\[ ,;!]|~")
_LETTER = re.compile(r"\(?\s*([A-J])\s*\)?\s*[.):]?")
_LOWER = re.compile(r"\(?\s*([A-Ja-j])\s*\)?\s*[.):]?")
_OPTION = re.compile(r"(?:\(\s*([A-J])\s*\)|([A-J])(?:\s*[.)]|:\s))\s*(\S.*)", re.DOTALL)
_ANOTHER = re.compile(r"\([A-J]\)|(?<![\w\\^])[A-J](?:[.):]|\s*\Z)", re.ASCII)
"""Pattern of an option's letter in the text of another option."""

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
    texts = [
        _SPACE.sub(" ", question[mark.end() : end]).strip(" $,;").rstrip(" $,;.")
        for mark, end in zip(marks, ends, strict=True)
    ]
    return {mark[1] or mark[2]: text for mark, text in zip(marks, texts, strict=True)}


def _is_text_of(text: str, option: str) -> bool:
    """Whether a text agrees with an option's text: both have the same words, value or comparison."""
    if same_text(option, text) or same_notation(option, text):
        return True
    return not {*map(key, possible_readings(text))}.isdisjoint(map(key, possible_readings(option)))


def _values(text: str) -> tuple[Node, ...]:
    """Return the readings of a text that are values without words; empty for other texts."""
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
