"""A problem: one thing to solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to solve.

    Attributes:
        id: Unique within its source.
        question: The text that the policy reads.
        answer: The gold answer, as text.
        source: Where it comes from (a file, a data set, a procedural family).
        meta: Whatever else the source tells: worked calculations, difficulty, licence.
    """

    id: str
    question: str
    answer: str
    source: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
