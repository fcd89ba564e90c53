"""A solved inequality is an answer to an unsolved one; an inequality that keeps the question's bars is none."""

from __future__ import annotations

import pytest

from rstar2_env.verification import verify

SOLVED = [
    ("Solve $2x<5$.", r"(-\infty,5/2)", r"x<\frac{5}{2}"),
    ("Solve 2x ≤ 5.", r"(-\infty, 2.5]", "x ≤ 5/2"),
    (r"Solve $-x \ge -3$.", r"(-\infty,3]", r"x\le3"),
    (r"Solve $1<2x+1<5$.", "(0,2)", "0<x<2"),
    (r"Solve $-3<-x<3$.", "(-3,3)", "-3<x<3"),
    (r"Solve $|x| \le 3$.", "[-3,3]", r"-3 \le x \le 3"),
    ("Solve the inequality $|x| < 2$.", "-2<x<2", "(-2,2)"),
    (r"Solve $|x| < 2$.", "(-2,2)", r"\{x : -2<x<2\}"),
    (r"Solve $|x| < 2$.", "(-2,2)", r"x>-2 \text{ and } x<2"),
    ("Solve |x| ≥ 2.", "x ≤ -2 or x ≥ 2", r"(-\infty,-2]\cup[2,\infty)"),
    (r"Solve $1<|x|\le 3$.", r"[-3,-1)\cup(1,3]", r"-3\le x<-1 \text{ or } 1<x\le 3"),
    (r"Solve $|x|>3$.", r"(-\infty,-3)\cup(3,\infty)", r"x \notin [-3,3]"),
    (r"Find the interval of convergence of $\sum x^n$.", "(-1,1)", "|x|<1"),
    (r"For which $x$ does $\sum |x|^n/2^n$ converge?", "(-2,2)", "|x|<2"),
    (r"Find the domain of $\ln(2-|x|)$.", "(-2,2)", "|x|<2"),
    (r"Solve $|x|<3$ and write the set with bars.", "|x|<3", "-3<x<3"),
]

UNSOLVED = [
    (r"Solve |x| \le 5", "[-5,5]", r"|x| \le 5"),
    ("For which real x is |x| > 3?", "x<-3 or x>3", "|x|>3"),
    ("Find all x with |x|≤3.", "[-3,3]", r"|x|\le3"),
    (r"Solve $|x|-3\le0$.", "[-3,3]", r"|x|\le 3"),
    (r"Solve $2|x| > 6$.", r"x<-3 \text{ or } x>3", "3<|x|"),
    (r"Solve $|x| < 2$.", "(-2,2)", r"\{x : |x|<2\}"),
    (r"Solve $2<2|x|\le 6$.", r"[-3,-1)\cup(1,3]", r"1<|x|\le 3"),
    (r"Solve $2|x|<4$.", "(-2,2)", "|x|<2"),
    ("Solve abs(x) < 2.", "(-2,2)", "|x|<2"),
    ("The absolute value of $x$ is less than 3. Which $x$ are possible?", "(-3,3)", "|x|<3"),
    ("Solve 2x ≤ 5.", r"x\le 2.5", "2x ≤ 5"),
    (r"Solve $1<2x+1<5$.", "0<x<2", "1<2x+1<5"),
    ("Write $x<5/2$ in interval notation.", r"(-\infty,5/2)", "5/2>x"),
    ("Write x≤5 in interval notation.", r"(-\infty,5]", "5 ≥ x"),
    ("Write the interval $[1,3]$ as an inequality.", r"1\le x\le 3", "[1,3]"),
]


@pytest.mark.parametrize(("question", "gold", "answer"), SOLVED)
def test_a_solved_inequality_is_an_answer(question: str, gold: str, answer: str) -> None:
    assert verify(gold, answer, question=question, timeout_s=10.0).correct


@pytest.mark.parametrize(("question", "gold", "answer"), UNSOLVED)
def test_an_inequality_that_is_still_to_be_solved_is_no_answer(question: str, gold: str, answer: str) -> None:
    assert not verify(gold, answer, question=question, timeout_s=10.0).correct


def test_a_sum_of_the_question_is_an_echo_although_only_sympy_compares_it() -> None:
    gold, said = r"\sum_{k=1}^\infty \frac1{k^2}", r"\sum_{k=2}^\infty \frac1{(k-1)^2}"
    assert verify(gold, said, timeout_s=10.0).correct
    assert verify(gold, said, question=f"Let ${said}$ begin at $k=1$.", timeout_s=10.0).method == "echo"


@pytest.mark.parametrize(
    ("formula", "correct"),
    [("5", True), ("5.0", True), ("10/2", False), ("2+3", False), (r"\approx 5", False), ("5 gonupep", False)],
)
def test_a_formula_within_a_sentence_is_finished_too(formula: str, correct: bool) -> None:
    sentence = "The ball hits the wall after ${}$ seconds and falls down"
    assert verify(sentence.format(5), sentence.format(formula), timeout_s=10.0).correct is correct
