"""An unknown word anywhere in an accepted answer makes it refused: what is not understood is not paid."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from rstar2_env.verification import boxed_answer, verify_many

_TOKEN = re.compile(
    r"\\\\(?:begin|end|text\w*|mathrm|mathbf|mbox|operatorname)\s*\{[^{}]*\}|\\\\[a-zA-Z]+|\\\\.|\w+|\S"
)
_REASON = re.compile(r"\s*(?:\\\\text\s*\{)?\s*(?:yes|no|true|false)\b", re.IGNORECASE)


def nonsense(chance: Random) -> str:
    """A word of no language."""
    syllables = ("".join(chance.choice(part) for part in ("bdfgklmnprtvz", "aeiou")) for _ in range(3))
    return "".join(syllables) + chance.choice("bdgkpt")


def with_a_word(answer: str, chance: Random) -> str:
    """The answer with an unknown word at one of its token boundaries."""
    ends = [match.end() for match in _TOKEN.finditer(answer)]
    at = chance.choice([0, *ends])
    return f"{answer[:at]} {nonsense(chance)} {answer[at:]}"


def accepted(cases: list[dict[str, Any]], answer: str) -> list[tuple[str, str]]:
    inner = [(case["gold"], boxed_answer(case[answer]) or case[answer]) for case in cases if case["expected"]]
    pairs = [(gold, text) for gold, text in inner if not _REASON.match(text)]
    return [pair for pair, verdict in zip(pairs, verify_many(pairs, timeout=20.0), strict=True) if verdict.correct]


def paid(pairs: list[tuple[str, str]], chance: Random) -> list[tuple[str, str]]:
    changed = [(gold, with_a_word(answer, chance)) for gold, answer in pairs]
    return [pair for pair, verdict in zip(changed, verify_many(changed, timeout=20.0), strict=True) if verdict.correct]


def test_an_unknown_word_is_refused(labelled2: list[dict[str, Any]]) -> None:
    pairs = accepted(labelled2, "pred")
    assert len(pairs) > 300
    assert paid(pairs, Random(5)) == []
