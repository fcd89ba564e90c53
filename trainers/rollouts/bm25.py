"""``ranked``: documents by how well they match a query, by Okapi BM25 (Robertson and Zaragoza 2009).

score(d) = sum over the words w of the query of ln(1 + (N - n_w + 1/2) / (n_w + 1/2)) * f (k1 + 1) / (f + k1 (1 - b + b
|d| / mean |d|)), where f is how often w stands in d, and n_w in how many of the N documents.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence


def scores(query: str, documents: Sequence[str], *, k1: float = 1.5, b: float = 0.75) -> list[float]:
    """How well each document matches a query.

    Args:
        query: Any text.
        documents: Any texts.
        k1: How much a word that comes again adds.
        b: How much the length of a document counts, 0 to 1.
    """
    counts = [Counter(_words(document)) for document in documents]
    mean = sum(count.total() for count in counts) / max(len(counts), 1)
    found = [0.0] * len(counts)
    for word in set(_words(query)):
        having = sum(word in count for count in counts)
        rare = math.log(1 + (len(counts) - having + 0.5) / (having + 0.5))
        for at, count in enumerate(counts):
            often = count[word]
            found[at] += rare * often * (k1 + 1) / (often + k1 * (1 - b + b * count.total() / mean)) if often else 0.0
    return found


def ranked(query: str, documents: Sequence[str]) -> list[int]:
    """Positions of the documents, the best match first; of equal ones the later first."""
    found = scores(query, documents)
    return sorted(range(len(documents)), key=lambda at: (found[at], at), reverse=True)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
