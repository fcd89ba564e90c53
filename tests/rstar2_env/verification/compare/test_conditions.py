"""A condition after an answer is the gold's own, or does not restrict the gold."""

from __future__ import annotations

import pytest

from rstar2_env.verification import verify


@pytest.mark.parametrize(
    ("gold", "condition", "right"),
    [
        (r"\sqrt{x}", "x \\ge 0", True),
        (r"\sqrt{x}", "x > 5", False),
        (r"\ln x", "x > 0", True),
        (r"\sqrt{4-x}", "x \\le 4", True),
        (r"\frac1x", "x \\ne 0", True),
        (r"\frac1x", "x > 0", False),
        ("x^2", "x > 0", False),
        ("x+1", "x = 5", False),
        ("7", "x = 1", False),
        ("7", "n > 0", False),
        ("n(n+1)", "n \\ge 1", True),
        ("n(n+1)", "n \\ge 2", False),
        ("x + y", "x > y", False),
    ],
)
@pytest.mark.parametrize("word", ["for", "if", "for all"])
def test_a_relation_must_hold_wherever_the_gold_has_a_value(gold: str, condition: str, right: bool, word: str) -> None:
    answer = rf"{gold} \text{{ {word} }} {condition}"
    assert verify(gold, answer, timeout_s=10.0).correct is right


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (r"\text{ for all integers } k", True),
        (r"\text{ for } k \in \mathbb{Z}", True),
        (r"\text{ for } k \in \{0, 1\}", False),
        (r"\text{ for odd } k", False),
        (r"\text{ for every even integer } k", False),
        (r"\text{ for prime } k", False),
        (r"\text{ if integers}", False),
        (r"\text{ where } k \text{ is not an integer}", False),
        (r"\text{ where } k \text{ is a negative integer}", False),
    ],
)
def test_a_set_of_numbers_must_be_whole(words: str, right: bool) -> None:
    assert verify(r"2k\pi", rf"2k\pi {words}", timeout_s=10.0).correct is right


def test_a_condition_of_the_gold_may_be_repeated_or_left_out() -> None:
    gold = r"x^2 \text{ for } x > 0"
    assert verify(gold, "x^2", timeout_s=10.0).correct
    assert verify(gold, r"x \cdot x \text{ for } x > 0", timeout_s=10.0).correct
    assert verify(gold, r"x^2 \text{ for } x>0", timeout_s=10.0).correct
    assert not verify(gold, r"x^2 \text{ for } x < 0", timeout_s=10.0).correct
