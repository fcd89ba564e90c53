"""Suspicions: possible findings of a probe, each with a program that must reproduce it in a fresh process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from rstar2_env.evaluation.audit.process import AuditCall

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "paid": "wrong answers are accepted",
        "refused": "right answers are rejected",
        "exploit": "a text is accepted for gold answers of different values",
        "determinism": "a grade changes when the call is repeated",
        "portability": "a grade depends on the environment of the process",
        "writable": "an answer, a file or a variable that an agent can write changes grades",
        "crash": "an answer raises an exception",
        "time": "an answer takes too long",
    }
)
"""Description of every kind of finding."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A possible finding that no program has confirmed yet.

    Attributes:
        kind: One of ``KINDS``.
        cause: The cause, such as "a digit appended".
        said: Sentence that describes the finding, with the smallest example.
        script: The program that reproduces the finding.
        call: The smallest call that shows the finding.
        found: Number of calls that showed the finding.
        tried: Number of calls that could have shown the finding.
        timeout_s: Time limit of the program, in seconds.
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
    """Return a text as a Python literal; the middle of a long text is left out."""
    written = repr(text)
    if len(written) <= longest:
        return written
    return f"{written[: longest // 2]}...{written[-longest // 4 :]} ({len(text)} characters)"
