"""A number without a letter stands for an option only if no other option has the number; a decimal point counts."""

from __future__ import annotations

import pytest

from rstar2_env.verification import verify

WEIGHTS = "How heavy is it? (A) 5 kg (B) 5 g (C) 7 kg"
VOLTAGES = "What is the voltage? (A) 5 V (B) 5 mV (C) 2 V"
SOLUTIONS = "Which is it? (A) x = 3 (B) x > 3 (C) x < 3"
HALVES = r"How heavy is it? (A) \frac12 kg (B) \frac12 g"
ROOTS = r"Which is it? (A) \sqrt2 (B) 2 (C) 2\sqrt2"
POINTS = "Which is it? (A) .25 (B) .75 (C) .5"
WHOLE = "Which is it? (A) 75 (B) 7.5 (C) .75"
SIGNS = "Which is it? (A) $-75$ (B) $75$ (C) 750."

RIGHT = [
    (WEIGHTS, "C", "7"),
    (WEIGHTS, "B", "5 grams"),
    (WEIGHTS, "A", "(A) 5 kg"),
    (VOLTAGES, "C", "2"),
    (VOLTAGES, "A", "5 V"),
    (SOLUTIONS, "A", "x=3"),
    (ROOTS, "B", "2.0"),
    (POINTS, "B", "(B) 0.75"),
    (POINTS, "B", "(B) 3/4"),
    (POINTS, "B", "(B) 75%"),
    (POINTS, "B", "0.75"),
    (POINTS, "B", ".75"),
    (WHOLE, "A", "75"),
    (WHOLE, "C", ".75"),
    (SIGNS, "A", "-75"),
    (SIGNS, "B", "75"),
    (SIGNS, "C", "750"),
]

WRONG = [
    (WEIGHTS, "A", "5"),
    (WEIGHTS, "A", "5.0"),
    (WEIGHTS, "(A) 5 kg", "5"),
    (VOLTAGES, "B", "5"),
    (SOLUTIONS, "A", "3"),
    (HALVES, "A", "1/2"),
    (POINTS, "B", "75"),
    (POINTS, "B", "(B) 75"),
    (WHOLE, "A", ".75"),
    (WHOLE, "A", "(A) .75"),
    (SIGNS, "B", ".75"),
    (SIGNS, "B", "-75"),
]


@pytest.mark.parametrize(("question", "gold", "answer"), RIGHT)
def test_an_answer_that_only_one_option_has_stands_for_it(question: str, gold: str, answer: str) -> None:
    assert verify(gold, answer, question=question, timeout_s=10.0).correct


@pytest.mark.parametrize(("question", "gold", "answer"), WRONG)
def test_a_number_that_other_options_may_mean_is_refused(question: str, gold: str, answer: str) -> None:
    assert not verify(gold, answer, question=question, timeout_s=10.0).correct
