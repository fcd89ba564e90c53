"""Gold answers that no answer could match are found before training."""

from __future__ import annotations

import pytest

from rstar2_env.verification import gold_fault


@pytest.mark.parametrize(
    "gold", ["7", r"\frac{1}{2}", r"So $x = \boxed{7}$.", "no solution", "(1, 2]", "$x^2 + C$", "Yes"]
)
def test_a_gold_that_can_be_read_has_no_fault(gold: str) -> None:
    assert gold_fault(gold) is None


@pytest.mark.parametrize(
    ("gold", "fault"),
    [
        ("", "empty"),
        (r"\boxed{}", "empty"),
        ("9^{9^{9^9}}", "too large to read"),
        (r"\frac{1}{", "exactly the same text"),
        ("The two lines meet. They are not parallel.", "exactly the same text"),
    ],
)
def test_a_gold_that_only_itself_could_match_says_why(gold: str, fault: str) -> None:
    found = gold_fault(gold)
    assert found is not None
    assert fault in found


def test_most_golds_of_a_real_data_set_can_be_read(college_golds: list[str]) -> None:
    assert sum(gold_fault(gold) is not None for gold in college_golds) < 0.1 * len(college_golds)
