"""What is not understood is not paid, and spelling changes nothing: metamorphic tests on every accepted pair.

An unknown word at a token boundary of an accepted answer makes it refused. A word of the gold next to the number, and
another spelling of the same answer, leave it accepted. CI runs a sample with a fixed seed; the proof runs all pairs at
all boundaries with a fresh seed, which its row states.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from rstar2_env.verification import boxed_answer, verify, verify_many

Pairs = list[tuple[str, str]]

_TOKEN = re.compile(
    r"\\(?:begin|end|color|operatorname)\s*\{[^{}]*\}|\\(?:text\w*|math[a-z]+|mbox)\s*\{|\\[a-zA-Z]+|\\.|\w+|\S"
)
_REASON = re.compile(r"\s*(?:\\text\w*\s*\{|\()*\s*(?:yes|no|true|false)\b", re.IGNORECASE)
_RESPELLINGS: dict[str, Callable[[str], str]] = {
    "dollars": lambda text: text if {"$", "*"} & {*text} or "\\(" in text else f"${text}$",
    "a full stop": lambda text: text if text.endswith((".", "\\")) else f"{text}.",
    "other commands": lambda text: (
        text.replace("\\frac", "\\dfrac").replace("\\le ", "\\leq ").replace("\\{", "\\lbrace ")
    ),
    "spaces": lambda text: f"  {text} ",
    "Unicode": lambda text: text.replace("\\pi", "π").replace("\\times", "×").replace("\\infty", "∞").replace("-", "−"),
    "sizes": lambda text: text.replace("\\left", "").replace("\\right", ""),
}


def nonsense(chance: Random) -> str:
    """A word of no language."""
    syllables = ("".join(chance.choice(part) for part in ("bdfgklmnprtvz", "aeiou")) for _ in range(3))
    return "".join(syllables) + chance.choice("bdgkpt")


def with_a_word(answer: str, chance: Random, *, everywhere: bool) -> Iterator[str]:
    """The answer with an unknown word at one of its token boundaries, or at each in turn."""
    ends = [0, *(match.end() for match in _TOKEN.finditer(answer))]
    for at in ends if everywhere else [chance.choice(ends)]:
        yield f"{answer[:at]} {nonsense(chance)} {answer[at:]}"


def right(pairs: Pairs) -> Pairs:
    return [pair for pair, verdict in zip(pairs, verify_many(pairs, timeout_s=20.0), strict=True) if verdict.correct]


def accepted(cases: list[dict[str, Any]]) -> Pairs:
    """The accepted pairs whose answer is not a decision, which may have a reason."""
    texts = [(case["gold"], case.get("pred") or case["answer"]) for case in cases if case["expected"]]
    pairs = [(gold, boxed_answer(text) or text) for gold, text in texts]
    return right([pair for pair in pairs if pair[1] and not _REASON.match(pair[1])])


def paid(pairs: Pairs, chance: Random, *, everywhere: bool = False) -> Pairs:
    return right(
        [(gold, text) for gold, answer in pairs for text in with_a_word(answer, chance, everywhere=everywhere)]
    )


def lost(pairs: Pairs) -> list[tuple[str, str, str]]:
    """The respelled pairs that are refused, with the name of the respelling."""
    made = [(name, gold, change(answer)) for gold, answer in pairs for name, change in _RESPELLINGS.items()]
    verdicts = verify_many([(gold, answer) for _, gold, answer in made], timeout_s=20.0)
    return [each for each, verdict in zip(made, verdicts, strict=True) if not verdict.correct]


def test_an_unknown_word_is_refused(labelled2: list[dict[str, Any]]) -> None:
    pairs = accepted(labelled2)
    assert len(pairs) > 300
    assert paid(pairs, Random(5)) == []


def test_spelling_changes_nothing(labelled2: list[dict[str, Any]]) -> None:
    assert lost(accepted(labelled2)[::5]) == []


def test_a_word_of_the_gold_changes_nothing() -> None:
    chance = Random(6)
    for number in range(2, 30):
        noun, other = nonsense(chance), nonsense(chance)
        assert all(verify(f"{number} {noun}", text).correct for text in (f"{number} {noun}", f"{number} {noun}s"))
        assert not verify(f"{number} {noun}", f"{number} {other}").correct


@pytest.mark.proof
def test_every_boundary_of_every_accepted_pair(
    labelled: list[dict[str, Any]],
    labelled2: list[dict[str, Any]],
    labelled3: list[dict[str, Any]],
    record_property: Callable[[str, object], None],
) -> None:
    seed = time.time_ns()
    pairs = [pair for cases in (labelled, labelled2, labelled3) for pair in accepted(cases)]
    changed = sum(len(_TOKEN.findall(answer)) + 1 for _, answer in pairs)
    found, refused = paid(pairs, Random(seed), everywhere=True), lost(pairs)
    record_property("seed", seed)
    record_property("answers with an unknown word paid", f"{len(found)} of {changed:,}")
    record_property("respellings refused", f"{len(refused)} of {len(pairs) * len(_RESPELLINGS):,}")
    assert found == [], seed
    assert len(refused) <= 0.01 * len(pairs) * len(_RESPELLINGS), refused
