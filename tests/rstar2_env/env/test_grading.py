"""The gold answer decides, and copying the question earns nothing."""

import pickle

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.grading import GoldGrader
from rstar2_env.problems import Problem
from rstar2_env.verification import Reason


@pytest.mark.parametrize(
    ("question", "gold", "answer", "correct"),
    [
        ("Mia has 12 pens. How many?", "12", "12", True),
        ("What is 0.5 as a fraction?", "1/2", "\\frac{1}{2}", True),
        ("What is 3+4?", "7", "3+4", False),
        ("Factor $x^2+2x+1$.", "(x+1)^2", "x^2+2x+1", False),
        ("Factor $x^2+2x+1$.", "(x+1)^2", "(1+x)(x+1)", True),
        ("What is 3+4?", "7", "8", False),
    ],
)
def test_right_is_what_equals_the_gold_answer_and_is_not_copied_from_the_question(question, gold, answer, correct):
    assert GoldGrader()(Problem("p", question, gold), answer).correct is correct


def test_an_echo_is_no_answer_rather_than_a_wrong_one():
    assert GoldGrader()(Problem("p", "What is 3+4?", "7"), "3+4").reason is Reason.NO_ANSWER


def test_a_grader_survives_pickling():
    assert pickle.loads(pickle.dumps(GoldGrader(2.0))) == GoldGrader(2.0)


def test_a_timeout_must_be_positive():
    with pytest.raises(ConfigurationError, match="verify_timeout"):
        GoldGrader(0)
