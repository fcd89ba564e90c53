"""The gold answer decides, and copying the question earns nothing."""

import pickle

import pytest

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.env.grading import GoldGrader
from rstar2_env.problems import Problem
from rstar2_env.verification import Reason, Verdict, numeric


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


class OwnVerifier:
    """Right is what is as long as the gold answer."""

    def __call__(self, gold, answer, question=None):
        return Verdict(len(gold) == len(answer), Reason.EQUAL, "length", 0.0)

    async def acall(self, gold, answer, question=None):
        return self(gold, answer, question)


class TestVerifier:
    PROBLEM = Problem("p", "How far is it, in metres?", "100")

    @pytest.mark.parametrize(
        ("verifier", "answer", "correct"),
        [
            ("rules", "101", False),
            ("rules:tolerance=0.02", "101", True),
            ("numeric", "100.5", True),
            ("numeric", "102", False),
            ("numeric:tolerance=0.05", "102", True),
            ({"name": "numeric", "tolerance": 0.05}, "102", True),
            (numeric(0.05), "102", True),
            (OwnVerifier(), "999", True),
            (OwnVerifier, "9", False),
        ],
    )
    def test_a_grader_asks_the_verifier_that_it_was_given(self, verifier, answer, correct):
        grader = GoldGrader(verifier=verifier)
        assert grader(self.PROBLEM, answer).correct is correct
        assert pickle.loads(pickle.dumps(grader))(self.PROBLEM, answer).correct is correct

    def test_the_timeout_is_that_of_rules_unless_they_say_another(self):
        assert GoldGrader(3.0, "numeric").verifier.options.timeout_s == 3.0
        assert GoldGrader(3.0, "numeric:timeout_s=2").verifier.options.timeout_s == 2.0

    def test_echoes_are_answers_where_that_is_asked_for(self):
        problem = Problem("p", "Expand $(x+1)(x-1)$.", "x^2-1")
        assert GoldGrader(verifier="rules:echo=true")(problem, "(x+1)(x-1)").correct
        assert not GoldGrader(verifier="rules")(problem, "(x+1)(x-1)").correct

    @pytest.mark.parametrize(
        ("verifier", "error", "said"),
        [
            ("numerik", UnknownNameError, "no verifier named 'numerik'. Did you mean 'numeric'"),
            ("numeric:tolerence=1", ConfigurationError, "verifier 'numeric'.*Did you mean 'tolerance'"),
            ("numeric:tolerance=-1", ConfigurationError, "tolerance"),
            ("model", ConfigurationError, "verifier 'model'.*url"),
            ("model:url=localhost,model=m", ConfigurationError, "url must be an address"),
            ("model:url=http://a/v1,model=m,api_key_env=NO_SUCH_KEY", ConfigurationError, "NO_SUCH_KEY.*is not set"),
            (Problem, ConfigurationError, "Problem"),
            (lambda: 7, ConfigurationError, "of type int; expected an object"),
            (7, ConfigurationError, "got 7"),
        ],
    )
    def test_a_mistake_names_the_verifier(self, verifier, error, said):
        with pytest.raises(error, match=said):
            GoldGrader(verifier=verifier)


def test_a_timeout_must_be_positive():
    with pytest.raises(ConfigurationError, match="verify_timeout_s"):
        GoldGrader(0)
