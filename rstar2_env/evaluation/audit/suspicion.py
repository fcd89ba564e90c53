"""Suspicions: findings of a probe, with the program that must show each in a fresh process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from rstar2_env.evaluation.audit.process import AuditCall

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "paid": "wrong answers are paid",
        "refused": "right answers are refused",
        "exploit": "a text is paid for golds of different values",
        "determinism": "a grade changes when it is repeated",
        "portability": "a grade depends on the surrounding",
        "writable": "an answer, a file or a variable that an agent can write changes grades",
        "crash": "an answer raises an exception",
        "time": "an answer takes too long",
    }
)
"""Every kind of finding, and what it means."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A finding that is not confirmed yet.

    Attributes:
        kind: One of ``KINDS``.
        cause: The cause within its kind ("a digit appended").
        said: A sentence with the smallest example.
        script: The program that shows it.
        call: The smallest call.
        found: Number of calls that showed it.
        tried: Number of calls that could have shown it.
        timeout_s: Longest time of the program, in seconds.
    """

    kind: str
    cause: str
    said: str
    script: str
    call: AuditCall
    found: int = 1
    tried: int = 1
    timeout_s: float = 120.0


Suspicions: TypeAlias = Iterator[Suspicion]


def shown(text: str, longest: int = 60) -> str:
    """Return a text as a literal, cut in the middle."""
    written = repr(text)
    if len(written) <= longest:
        return written
    return f"{written[: longest // 2]}...{written[-longest // 4 :]} ({len(text)} characters)"
