"""Names that the parser knows: functions, relations, accents, environments; and tests whether letters are a word."""

from __future__ import annotations

import re
from pathlib import Path


def word_set(text: str) -> frozenset[str]:
    """Return the set of the words in a text."""
    return frozenset(text.split())


def table(name: str) -> list[str]:
    """Return the lines of a table in this folder, without empty lines and comments, which begin with ``#``."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line and not line.startswith("#")]


_SECTIONS = re.split(r"\[([a-z ]+)\]\n", "\n".join(table("vocabulary.txt")))
LISTS = dict(zip(_SECTIONS[1::2], map(word_set, _SECTIONS[2::2]), strict=True))
"""The word lists of ``vocabulary.txt``, by name."""


BRACKETED_FUNCTIONS = word_set(
    "sh ch th tr Re Im dim ker rank abs floor ceil ceiling span adj det arg lg tg Tr max min"
)
"""Spellings that, without a backslash, are functions only before a bracket; otherwise they are products or words."""

CONSTANTS = {"pi": "pi", "infty": "oo", "inf": "oo", "infinity": "oo", "oo": "oo"}
"""Constants that are often written without a backslash."""

_ROWS = [line.split("\t") for line in table("symbols.txt")]
"""Rows of ``symbols.txt``, each with the kind, the text and the spellings of a token."""

COMMANDS = {spellings.split(" ")[0][1:]: (kind, text) for kind, text, spellings in _ROWS if kind}
"""Maps a LaTeX command to the kind and the text of its token. Any other command is a variable of that name."""

FUNCTIONS = {name: text for name, (kind, text) in COMMANDS.items() if kind == "fn"}
"""Name of a function in the tree, by each spelling of the function."""

BARE_COMMANDS = FUNCTIONS.keys() | {"sqrt", "max", "min"}
"""Commands that are also written without a backslash."""

RESPELLED = {
    other: (f"{first} " if first[-1].isalpha() else first).replace("\\x20", " ")
    for first, *others in (spellings.split(" ") for _, _, spellings in _ROWS)
    for other in others
}
"""Maps a command or a character to the spelling that replaces it."""

GREEK = frozenset(name for name, token in COMMANDS.items() if token == ("let", name) and len(name) > 1)
ACCENTS = frozenset(name for name, (kind, _) in COMMANDS.items() if kind == "accent")
"""Commands that put an accent on a letter, which becomes part of the variable's name."""

NUMBER_SETS = word_set("R Z N Q C")

PLAIN_ACCENTS = word_set("boldsymbol pmb mathcal mathscr mathfrak underline")
"""The ``ACCENTS`` that change only the typeface."""

TEXT_COMMANDS = word_set(
    """text textbf textit textrm textsf texttt textnormal textup emph mbox hbox mathrm mathbf mathit mathsf mathtt
    operatorname mathop mathbin mathrel mathord phantom unit"""
)

MATRIX_ENVIRONMENTS = word_set("matrix pmatrix bmatrix vmatrix Vmatrix Bmatrix smallmatrix array")

LAYOUT_ENVIRONMENTS = word_set(
    "align aligned gathered gather split equation cases center displaymath eqnarray multline math"
)

WORDS = LISTS["short words"]
"""Short runs of letters that are words, not products of variables."""

PERCENT_WORDS = frozenset({"percent", "per cent", "pct", "percentage", "percents"})

JOINTS = {"或": "or", "和": "and", "及": "and", "与": "and", "と": "and", "または": "or", "и": "and", "или": "or"}
"""Chinese, Japanese and Cyrillic words that join two answers, and the English word for each."""

VERBS = word_set("is are equals equal was be gives yields makes totals costs weighs measures")
"""Words between a label and its value, as in "the area is 5"."""

_RESULT = re.compile(r"\b(?:comes(?: out)?|amounts|(?:adds|sums)(?: up)?|works out|evaluates|simplifies|reduces) to\Z")
"""Pattern of a verb of several words between a label and its value, as in "the area comes to 5"."""

STRUCTURES = word_set("the an ordered point pair triple vector matrix set interval tuple coordinates at union is are")
"""Words that name a structure before its bracket, as in "the point (3, -2)"."""

DENIALS = word_set("not cannot never neither nor no hardly")
"""Words that negate a statement about a value."""

APPROXIMATIONS = word_set("approximately about approx roughly")
"""Words that say that the value next to them is not exact."""

FILLERS = APPROXIMATIONS | word_set("共 总共 一共 計 only just exactly answer final value total number year")
"""Words before a value; among them, only ``APPROXIMATIONS`` change the meaning of the value."""

CONDITION_STARTS = word_set("for where with if when as provided given unless on over")
"""Words that begin a condition or remark after an answer."""

RESTRICTION = "given"
"""Word that the parser puts before a condition that the text states without a word, after a comma or in brackets."""

UNIT_STOPS = CONDITION_STARTS | word_set("is are at then not")
"""Words that cannot begin a unit."""

_SHORT_FUNCTION = re.compile(r"(sin|cos|tan|cot|ln|log|exp|sqrt|pi)([a-df-hj-lnq-rt-zA-Z]{0,2})")
_ENGLISH = word_set("tank tang cost cosh logy pita pity pith pill pick pitch expat cotta")
_VOWELS = frozenset("aeiouyAEIOUY")


def short_function(run: str) -> tuple[str, str] | None:
    """Split letters such as ``sinx`` into a function and one or two variables; ``None`` for other letters."""
    match = None if run in _ENGLISH else _SHORT_FUNCTION.fullmatch(run)
    return (match[1], match[2]) if match else None


def is_word(run: str) -> bool:
    r"""Return whether letters outside of ``\text`` are a word rather than a product of variables."""
    if run.lower() in WORDS:
        return True
    if len(run) < 4 or run.isupper() or run in GREEK or short_function(run) is not None:
        return False
    return any(char in _VOWELS for char in run)


def lowered(said: str) -> str:
    """Return words in lower case, except for single letters and words in capitals, which may be names, such as ABC."""
    return " ".join(word if len(word) == 1 or word.isupper() else word.lower() for word in said.split())


def label_before(said: str) -> str | None:
    """Return the words before the final verb, as ``lowered`` writes them; ``None`` if the last word is not a verb."""
    *label, verb = _RESULT.sub("is", lowered(said)).split()
    return " ".join(label or [verb]) if verb.lower() in VERBS else None
