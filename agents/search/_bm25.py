"""``Bm25``: the texts that share the rarest words with a query (Robertson and Zaragoza 2009; k1 = 1.5, b = .75)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_K1, _B = 1.5, 0.75


class Bm25:
    """An index of texts.

    Args:
        texts: The texts.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = [Counter(_words(text)) for text in texts]
        self._lengths = [sum(words.values()) for words in self._words]
        self._mean = sum(self._lengths) / max(1, len(texts)) or 1.0
        holders = Counter(word for words in self._words for word in words)
        self._rarity = {
            word: math.log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in holders.items()
        }

    def nearest(self, query: str, most: int) -> list[int]:
        """Positions of the nearest texts, the nearest first; none that shares no word with the query."""
        asked = set(_words(query))
        scores = [self._score(place, asked) for place in range(len(self._words))]
        return sorted((place for place, score in enumerate(scores) if score > 0), key=lambda one: -scores[one])[:most]

    def _score(self, place: int, asked: set[str]) -> float:
        words, scale = self._words[place], 1 - _B + _B * self._lengths[place] / self._mean
        return sum(
            self._rarity[word] * words[word] * (_K1 + 1) / (words[word] + _K1 * scale)
            for word in asked
            if word in words
        )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())
