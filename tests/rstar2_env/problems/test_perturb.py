"""Claims about wrong answers made on purpose: they are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from rstar2_env.problems.perturb import changed_answer, miscopied
from rstar2_env.verification import verify


@pytest.mark.parametrize(
    "answer", ["18", "-3", "0", "0.5", "27.0", "1/3", "\\frac{1}{2}", "x+1", "\\sqrt{2}", "9" * 40, "1e3"]
)
def test_a_changed_answer_is_never_right(answer):
    assert not verify(answer, changed_answer(answer)).correct
    assert verify(answer, answer).correct


@pytest.mark.parametrize(("answer", "changed"), [("18", "19"), ("-1", "0"), ("0.50", "1.50"), ("x", "(x)+1")])
def test_a_number_changes_by_one_and_keeps_its_form(answer, changed):
    assert changed_answer(answer) == changed


@pytest.mark.parametrize("answer", ["0", "1", "7", "10", "11", "34", "100", "-5", "-40", "2112", "70000"])
def test_a_miscopied_number_is_another_number_written_plainly(answer):
    rng = np.random.default_rng(0)
    copies = {miscopied(answer, rng) for _ in range(300)}
    assert len(copies) >= 5
    for copy in copies:
        assert int(copy) != int(answer)
        assert str(int(copy)) == copy or copy == "-0"
        assert abs(len(copy) - len(answer)) <= 2


def test_an_answer_that_is_no_whole_number_is_changed_all_the_same():
    assert miscopied("1/3", np.random.default_rng(0)) == "(1/3)+1"
