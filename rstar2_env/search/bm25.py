r"""``Bm25``: an index that finds the texts that match a query, by Okapi BM25 (Robertson and Zaragoza 2009).

The score of a text d is the sum, over the distinct words w of the query, of

    ln(1 + (N - n_w + 1/2) / (n_w + 1/2)) * f (k1 + 1) / (f + k1 (1 - b + b |d| / mean |d|))

where f is the number of occurrences of w in d, n_w is the number of texts that contain w, N is the number of texts, |d|
is the number of words of d, and the mean is over all texts. Not covered: stems, synonyms.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

WORDS = r"\w+"
"""Pattern of a word: letters, digits and underscores."""
WORDS_AND_SIGNS = r"\w+|[^\w\s]"
"""Pattern for texts with formulas: a word (``WORDS``), or any other single character except white space."""


class Bm25:
    """A BM25 index of texts.

    Args:
        texts: The texts to search in.
        words: A regular expression that matches a word; texts are converted to lower case first.
        k1: Weight of repeated occurrences of a word; 0 counts a word once.
        b: Strength of the length normalization, 0 to 1.
    """

    def __init__(self, texts: Sequence[str], *, words: str = WORDS, k1: float = 1.5, b: float = 0.75) -> None:
        self._pattern, self._k1 = re.compile(words), k1
        self._counts = [Counter(self._words(text)) for text in texts]
        lengths = [count.total() for count in self._counts]
        mean = sum(lengths) / max(1, len(texts)) or 1.0
        self._scales = [1 - b + b * length / mean for length in lengths]
        holders = Counter(word for count in self._counts for word in count)
        self._rarity = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in holders.items()}

    def scores(self, query: str) -> list[float]:
        """Return the score of each text for a query; 0 for a text that shares no word with the query."""
        asked = sorted(set(self._words(query)))  # sorted, since the rounding of a sum depends on the order of its terms
        return [self._score(count, scale, asked) for count, scale in zip(self._counts, self._scales, strict=True)]

    def nearest(self, query: str, most: int) -> list[int]:
        """Return the positions (from 0) of the best matching texts, best first; ties are in the order of the texts.

        Args:
            query: Any text.
            most: Maximum number of positions. Texts that share no word with the query are left out.
        """
        scores = self.scores(query)
        return sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: -scores[at])[:most]

    def _score(self, count: Counter[str], scale: float, asked: Sequence[str]) -> float:
        held = [(self._rarity[word], count[word]) for word in asked if word in count]
        return sum(rarity * often * (self._k1 + 1) / (often + self._k1 * scale) for rarity, often in held)

    def _words(self, text: str) -> list[str]:
        return self._pattern.findall(text.lower())
