"""Claims about the filters of training problems: what they leave out, and the reason that they give."""

from __future__ import annotations

import pytest

from rstar2_env.problems import Problem
from rstar2_env.problems.prepare.duplicates import question_key, unique_questions
from rstar2_env.problems.prepare.integers import integer_answers, integer_of
from rstar2_env.problems.prepare.lengths import fitting_lengths
from rstar2_env.problems.prepare.verifiable import verifiable_answers


def made(*pairs: tuple[str, str]) -> list[Problem]:
    return [Problem(str(number), question, answer) for number, (question, answer) in enumerate(pairs)]


def ids(problems: list[Problem]) -> list[str]:
    return [problem.id for problem in problems]


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("27", "27"),
        ("  $-3$ ", "-3"),
        ("\\boxed{27}", "27"),
        ("$\\boxed{1{,}234}$", "1234"),
        ("1,234,567", "1234567"),
        ("027", "27"),
        ("27.0", "27"),
        ("+5", "5"),
        ("−5", "-5"),
        ("-0", "0"),
        ("000", "0"),
    ],
)
def test_an_integer_comes_out_in_plain_digits(written: str, plain: str) -> None:
    assert integer_of(written) == plain


@pytest.mark.parametrize(
    "written", ["27.5", "1/2", "3^3", "27 cm", "1,23", "12,3456", "", "x", "1e3", "٣", "--5", "5 6"]
)
def test_anything_else_is_no_integer(written: str) -> None:
    assert integer_of(written) is None


def test_what_is_no_integer_or_has_too_many_digits_is_left_out_and_the_rest_is_rewritten() -> None:
    problems = made(("a", "$027$"), ("b", "1/2"), ("c", "-123456"), ("d", "-12345"))
    kept, removed = integer_answers(problems, most_digits=5)
    assert [(problem.id, problem.answer) for problem in kept] == [("0", "27"), ("3", "-12345")]
    assert [one.why for one in removed] == ["the answer is not an integer", "the answer has 6 digits, more than 5"]
    assert ids(integer_answers(made(("c", "1" * 5000)))[0]) == ["0"]


def test_the_length_of_a_question_has_two_bounds_which_are_within() -> None:
    problems = made((" ab ", "1"), ("abc", "1"), ("abcd", "1"), ("abcde", "1"))
    kept, removed = fitting_lengths(problems, least=3, most=4)
    assert ids(kept) == ["1", "2"]
    assert [one.why for one in removed] == [
        "the question has 2 characters, fewer than 3",
        "the question has 5 characters, more than 4",
    ]


def test_a_question_stays_once_and_not_at_all_where_its_answers_differ() -> None:
    problems = made(("Find $x$.", "1"), ("find x", "1"), ("How many?", "2"), ("how  many", "3"), ("Other?", "4"))
    kept, removed = unique_questions(problems)
    assert ids(kept) == ["0", "4"]
    assert {one.problem_id: one.why for one in removed} == {
        "1": "0 has the same question",
        "2": "the question has different answers: 2, 3",
        "3": "the question has different answers: 2, 3",
    }


def test_answers_that_differ_in_spaces_alone_are_one() -> None:
    kept, removed = unique_questions(made(("Find x.", "x = 1"), ("Find x.", "x=1")))
    assert (ids(kept), [one.why for one in removed]) == (["0"], ["0 has the same question"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("1 + 1", "1 - 1"), ("x > 3", "x < 3"), ("2*3", "2/3"), ("a^2 b", "a 2 b"), ("△ ◯", "◯ △")],
        *[(f"a {sign} b", "a b") for sign in "+*/^=<>|%-"],
        ("\ud800", "\udfff"),  # as a file may have them
    ],
)
def test_questions_that_differ_in_a_sign_are_two(one: str, other: str) -> None:
    assert question_key(one) != question_key(other)


@pytest.mark.parametrize(
    ("one", "other"), [("a well-known sum", "A well known sum!"), ("Is $x=3$?", "is x = 3"), ("x^{2}", "x^2")]
)
def test_questions_that_differ_in_mark_up_alone_are_one(one: str, other: str) -> None:
    assert question_key(one) == question_key(other)


def test_a_gold_answer_that_the_verifier_cannot_read_is_left_out_with_its_reason() -> None:
    kept, removed = verifiable_answers(made(("a", "27"), ("b", "3 +"), ("c", "\\frac{1}{2}")))
    assert ids(kept) == ["0", "2"]
    assert removed[0].why.startswith("the gold answer: only an answer with exactly the same text")


def test_a_verifier_that_accepts_anything_verifies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from rstar2_env.problems.prepare import verifiable

    real = verifiable.verify_many
    monkeypatch.setattr(verifiable, "verify_many", lambda pairs: real((gold, gold) for gold, _ in pairs))
    kept, removed = verifiable_answers(made(("a", "27")))
    assert (kept, removed[0].why) == ([], "the gold answer: the verifier also accepts the wrong answer 28")


def test_a_gold_answer_that_the_verifier_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from rstar2_env.problems.prepare import verifiable

    real = verifiable.verify_many
    monkeypatch.setattr(verifiable, "verify_many", lambda pairs: real((gold, "\\boxed{0}") for gold, _ in pairs))
    kept, removed = verifiable_answers(made(("a", "27")))
    assert kept == []
    assert removed[0].why.startswith("the gold answer: the verifier grades it as wrong (")


def test_every_answer_is_verified_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from rstar2_env.problems.prepare import verifiable

    monkeypatch.setattr(verifiable, "_AT_ONCE", 2)
    kept, removed = verifiable_answers(made(*((f"q{n}", "3 +" if n == 3 else str(n)) for n in range(5))))
    assert (ids(kept), [one.problem_id for one in removed]) == (["0", "1", "2", "4"], ["3"])
