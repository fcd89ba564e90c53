r"""Answers in words: their canonical spelling, and when two are equal.

Covered: case, punctuation, articles, ``\text{}``, a few common phrases for the same thing ("no
solution", "does not exist", "all real numbers"), yes and no with an explanation. Not covered: paraphrase; that is for a
model (see ``model``).
"""

from __future__ import annotations

import re

_TEXT_COMMAND = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname|emph|mathit|textsc|quad|qquad)\b\*?"
)
_PUNCTUATION = re.compile(r"[.,;:!?\"()\[\]`]+")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_SPACE = re.compile(r"\s+")
_ARTICLES = frozenset({"the", "a", "an"})
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        (
            *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
            *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
            *("nineteen", "twenty"),
        )
    )
}

_PHRASES = {
    "no solution": "#empty",
    "no solutions": "#empty",
    "no real solution": "#empty",
    "no real solutions": "#empty",
    "there is no solution": "#empty",
    "there are no solutions": "#empty",
    "no solution exists": "#empty",
    "no solutions exist": "#empty",
    "empty set": "#empty",
    "does not exist": "#undefined",
    "dne": "#undefined",
    "undefined": "#undefined",
    "not defined": "#undefined",
    "limit does not exist": "#undefined",
    "do not exist": "#undefined",
    "all real numbers": "#R",
    "all reals": "#R",
    "any real number": "#R",
    "all real": "#R",
    "infinitely many": "#oo",
    "infinitely many solutions": "#oo",
    "infinite": "#oo",
    "infinity": "#oo",
    "infinite number": "#oo",
    "neither even nor odd": "neither",
    "neither odd nor even": "neither",
}

_DECISIONS = {"yes": "yes", "no": "no", "true": "true", "false": "false"}


def plain_words(text: str) -> str:
    """The text in lower case, without commands, punctuation and articles, and with small numbers as digits."""
    text = _TEXT_COMMAND.sub(" ", text).replace("~", " ").replace("$", " ").replace("{", " ").replace("}", " ")
    text = _PUNCTUATION.sub(" ", text.replace("'s", "s").replace("'", ""))
    words = [word for word in _SPACE.split(text.lower()) if word and word not in _ARTICLES]
    return " ".join(_NUMBER_WORDS.get(word, word) for word in words)


def canonical(text: str) -> str:
    """The words in canonical spelling, or a symbol for set phrases: ``#empty``, ``#undefined``, ``#R``, ``#oo``."""
    words = plain_words(text)
    return _PHRASES.get(words, words)


def decision(text: str) -> str | None:
    """Yes, no, true or false, if the text begins with it and ends there or continues after a full stop or a comma."""
    match = re.match(
        r"\s*(yes|no|true|false)\b\s*([.,;:!]|$)(.*)", _TEXT_COMMAND.sub(" ", text).strip(" {}$"), re.I | re.S
    )
    if match is None:
        return None
    word = match[1].lower()
    others = {"yes", "no", "true", "false"} - {word}
    rest = set(re.findall(r"[a-z]+", match[3].lower()))
    return None if rest & others else _DECISIONS[word]


def same_text(gold: str, answer: str) -> bool:
    """Whether two texts have the same words. Punctuation is ignored, so texts without any word are never the same."""
    one, other = canonical(gold), canonical(answer)
    if not _LETTERS.search(one) or not _LETTERS.search(other):
        return one == other != "" and one.isalnum() and plain_words(answer) == answer.strip().lower()
    if one == other or one.replace(" ", "") == other.replace(" ", ""):
        return True
    decided = decision(gold)
    if decided is not None and decided == decision(answer):
        # One of them must end there: two different explanations of the same "yes" are two answers.
        return one in _DECISIONS or other in _DECISIONS
    return False


def is_contained(gold: str, answer: str) -> bool:
    """Whether the answer is a phrase of the gold sentence and contains no negation: the lenient rule for words."""
    one, other = plain_words(gold).split(), plain_words(answer).split()
    if not other or len(other) > len(one):
        return False
    if any(word in _NEGATIONS for word in one) != any(word in _NEGATIONS for word in other):
        return False
    return any(one[start : start + len(other)] == other for start in range(len(one) - len(other) + 1))


_NEGATIONS = frozenset({"not", "no", "never", "none", "neither", "nor", "cannot", "isnt", "doesnt", "without"})
