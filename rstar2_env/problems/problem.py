"""``Problem``: a question with its gold answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its gold answer.

    Attributes:
        id: Unique within its source.
        question: The text that the policy reads.
        answer: The gold answer, as text.
        source: The file, data set or procedural family that the problem comes from.
        meta: Further fields of the source, such as worked calculations, difficulty or licence.
    """

    id: str
    question: str
    answer: str
    source: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
