"""The words that may stand next to a number without changing its value: names of counted objects, and remarks.

Covered: words that follow numbers in word problems (``counted.txt``, made from data by ``tools/counted_words.py``),
remarks such as "per day" and "in total" with their most frequent counterparts in the languages of MGSM
(``vocabulary.txt``), and the words of the gold answer and the question. Any other word may change the value
("lakh", "twice", "in hex"), so an answer with it is refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from rstar2_env.verification.read.names import DENIALS, LISTS, word_set
from rstar2_env.verification.read.units import is_measure, read_unit, singular

COUNTED_FILE = Path(__file__).with_name("counted.txt")
_COUNTED = word_set(COUNTED_FILE.read_text(encoding="utf-8"))
REMARKS = LISTS["remarks"]
"""Words that may stand next to a number without changing its value."""

OPERATORS = LISTS["operators"] | DENIALS
"""Words that change, negate or bound the value of a number next to them."""

MAX_WORDS = 8
"""Longest remark next to a number, in words."""

_COUNTER = re.compile(
    r"(?:每[天个人小时周月年]|总共|一共|小时|小時|時間|分钟|分鐘|美元|美金|公里|公斤|千米|千克|英里|英寸|英尺|厘米|毫升|百米|平方米|ドル|ページ|キロ|マイル|メートル|センチ|グラム|ポンド"
    r"|リットル|です|[共个個只隻本页頁天岁歳歲年周週月日时時分秒块塊元角円人名位张張条條件杯瓶盒袋包箱枚冊种種匹頭头台辆輛朵棵颗顆根支份次回場场层層排组組双雙对對套间間座家所里米斤克升亩吨])"
)
"""Pattern of a counting word or unit of Chinese or Japanese; longer words are tried first."""
_WORD = re.compile(r"[^\W\d_]+(?:[\u0300-\u036f\u0900-\u0d7f\u0e31-\u0e4e]+[^\W\d_]*)*")
_OF_PERCENT = re.compile(
    r"(?<!\d )per ?cent(?:age)?(?: of)?(?: the)? (?:(?:did|do|does|will) [^.?!]*(?<! or) (?=[a-z]+\?))?"
    r"([a-z]+)\b(?! or\b)"
)
"""Pattern of the noun after "percent" or "percentage" ("percentage increase"), unless "or" follows the noun."""
_ASKED = re.compile(r"\bhow many (?:[a-z-]+ ){0,2}?([a-z]+(?<!s)s)\b")
"""Pattern of the plural noun after "how many"; this noun counts as known even if it is one of the ``OPERATORS``."""
_PREPOSITIONS = word_set("a as at in")
"""Prepositions and articles that are also symbols of units."""
_FORMULA = re.compile(r"(?:[A-Z][a-z]?){2,}")
"""Pattern of a chemical formula without numbers, such as ``NaCl``."""
_SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


@lru_cache(maxsize=256)
def known_words(gold: str, question: str | None) -> frozenset[str]:
    """Return the words of gold answer and question that are accepted next to a number, in lower case and singular."""
    words = {*_WORD.findall(gold.lower())} - DENIALS | {*_WORD.findall((question or "").lower())} - OPERATORS
    return frozenset((*map(singular, words), *_ASKED.findall((question or "").lower())))


def of_percent(question: str | None) -> frozenset[str]:
    """Return the noun after the last "percent" or "percentage" of a question: "increase" in "percentage increase"."""
    return frozenset(map(singular, _OF_PERCENT.findall((question or "").lower())[-1:])) - DENIALS


def direction(word: str) -> int:
    """Return 1 for a verb or noun that means a rise, -1 for one that means a fall, and 0 for any other word."""
    return (word in LISTS["rising"]) - (word in LISTS["falling"])


def change_said(label: str) -> tuple[str, int] | None:
    """Return subject and direction of a change, "sales" and -1 for "sales fell by"; ``None`` for other labels."""
    subject, _, verb = label.lower().removesuffix(" by").rpartition(" ")
    return (subject, direction(verb)) if label.endswith(" by") and direction(verb) else None


def names_things(text: str, known: frozenset[str] = frozenset()) -> bool:
    """Return whether the words next to a number only name the counted objects, so that they do not change its value.

    Args:
        text: The words.
        known: Further words to accept, from ``known_words``.
    """
    measure, _, thing = text.partition(" of ")
    if thing and read_unit(measure) is not None:
        text = thing  # such as "square feet of turf"
    words = [word if _FORMULA.fullmatch(word) else word.lower() for word in _WORD.findall(text)]
    if not 0 < len(words) <= MAX_WORDS or any(char.isdigit() for char in text):
        return False
    return all(_is_known(word, known) for word in words)


def may_precede(word: str) -> bool:
    """Return whether a word before a number may name counted objects ("dola 18"), as in some languages."""
    return read_unit(word) is not None or word in LISTS["other languages"] or _SPACELESS.search(word) is not None


def unknown_in_label(text: str, known: frozenset[str], question: str | None, *, noun: bool = False) -> str | None:
    """Return a label's first unknown word, which neither names a quantity nor is in the gold answer or the question.

    Args:
        text: The label.
        known: Further words to accept, from ``known_words``.
        question: The question; ``None`` if it is not known.
        noun: Whether the label must be a name of a quantity, or a word that the question has in lower case.
    """
    asked: set[str] = set(_WORD.findall(question or "" if noun else (question or "").lower()))
    words: list[str] = _WORD.findall(text.lower())
    for word in words:
        is_letter = len(word) == 1 and word.isascii()
        named = word in LISTS["labels"] or (word in REMARKS if noun else _is_known(word, known))
        if not (is_letter or word in asked or named):
            return word
    return None


def before_remark(text: str) -> str | None:
    """Return the unit in "meters tall" or "dollars in total"; ``None`` if more than a remark follows the unit."""
    first, _, rest = text.partition(" ")
    said = rest.lower().split()
    if not said or read_unit(first) is None or not all(word in REMARKS for word in said):
        return None
    return first if all(read_unit(word) is None or word in _PREPOSITIONS for word in said) else None


def same_things(gold: str, answer: str, known: frozenset[str]) -> bool:
    """Return whether two names of counted objects agree: one contains all words of the other.

    Singular and plural count as equal. The additional words of the longer name must not be units.

    Args:
        gold: The words next to the gold number.
        answer: The words next to the number to grade.
        known: Further words to accept, from ``known_words``.
    """
    one, other = ({singular(word) for word in _WORD.findall(text.lower())} for text in (gold, answer))
    if one == other:
        return bool(one)
    if not names_things(answer, known) or not one & other or not (one <= other or other <= one):
        return False
    return not any(word not in _PREPOSITIONS and is_measure(word) for word in one ^ other)


def _is_known(word: str, known: frozenset[str]) -> bool:
    if word in known or word in OPERATORS:
        return word in known
    if _SPACELESS.search(word):
        return _COUNTER.match(word) is not None and _COUNTER.sub("", word) in {"", *LISTS["counted signs"]}
    if word in REMARKS or word in LISTS["other languages"] or _FORMULA.fullmatch(word):
        return True
    single = singular(word)
    return single in known or not _COUNTED.isdisjoint((word, single, f"{word}s")) or is_measure(word)
