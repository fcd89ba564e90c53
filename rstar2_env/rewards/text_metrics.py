"""Text metrics, which measure the similarity of an answer to the gold answer, from 0 to 1."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_called_with
from rstar2_env.rewards.texts import pieces

TextMetric: TypeAlias = Callable[[str, str], float]
"""Function that maps the answer and the gold answer to a number; higher is more similar."""

TEXT_METRICS: Registry[TextMetric] = Registry(
    "text metric",
    "rstar2_env.rewards",
    "rstar2_env.text_metrics",
    shape=Shape(is_called_with(2), "a function of (answer, gold)"),
)
_LONGEST = 4
"""Longest n-gram of BLEU."""

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_DECISIONS = ("yes", "no", "noanswer")
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))


def word_f1(answer: str, gold: str) -> float:
    """Return 2 * (number of common words) / (number of words in both texts together); 1 for two texts without words.

    As in the evaluation of HotpotQA (arXiv 1809.09600), which Tool-Star and ARPO use, case, order, punctuation and
    English articles are ignored, and the answers "yes", "no" and "noanswer" match nothing but themselves.
    """
    own, other = Counter(_words(answer)), Counter(_words(gold))
    if own != other and any(len(words) == 1 and not words.keys().isdisjoint(_DECISIONS) for words in (own, other)):
        return 0.0
    total = own.total() + other.total()
    return 2 * (own & other).total() / total if total else 1.0


def bleu(answer: str, gold: str) -> float:
    """Return BLEU of one sentence: the geometric mean of 1- to 4-gram precisions, times the brevity penalty.

    For n >= 2, 1 is added to both the number of matches and the number of n-grams (Lin and Och, 2004), so that a
    sentence without a matching 4-gram does not score 0.
    """
    own, other = pieces(answer), pieces(gold)
    logs = []
    for n in range(1, _LONGEST + 1):
        mine, theirs = _grams(own, n), _grams(other, n)
        smooth = float(n > 1)
        matched, count = (mine & theirs).total() + smooth, mine.total() + smooth
        if not matched:
            return 0.0
        logs.append(math.log(matched / count))
    brevity = min(0.0, 1 - len(other) / len(own))
    return math.exp(brevity + sum(logs) / _LONGEST)


def _words(text: str) -> list[str]:
    return pieces(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)))


def _grams(items: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(items[at : at + n]) for at in range(len(items) - n + 1))


TEXT_METRICS.register("bleu", bleu)
TEXT_METRICS.register("word_f1", word_f1)
