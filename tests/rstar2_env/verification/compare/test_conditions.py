"""A condition after an answer equals one of the gold or the question, or does not restrict the gold."""

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
        ("n(n+1)", "n \\le 8", False),
        ("n(n+1)", "n \\le 10^9", False),
        ("x^2", "x < 10", False),
        ("x^2", "x > -10^{12}", False),
        ("x^2", "x \\in [0, 5]", False),
        ("x^2", "x \\in (0, 5)", False),
        ("x^2", "x \\in (-\\infty, \\infty)", True),
        (r"\ln x", "x \\in (0, \\infty)", True),
        (r"\sqrt{x^2-1}", "|x| \\ge 1", True),
        (r"\sqrt{x^2-1}", "x \\ge 1", False),
        (r"\sqrt{4-x^2}", "-2 \\le x \\le 2", True),
        (r"\ln(x^2-3x+2)", r"x < 1 \text{ or } x > 2", True),
        (r"\ln(x^2-3x+2)", "x > 2", False),
        (r"\frac{1}{n-1}", "n \\ne 1", True),
        (r"\frac{1}{n-1}", "n \\ne 2", False),
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
        (r"\text{ for } k \in [0, 1]", False),
        (r"\text{ for } k \in \mathbb{Z} \setminus \{0\}", False),
        (r", k \in \mathbb{Z} \setminus \{0\}", False),
        (r"(k \in \mathbb{Z})", True),
        (r"(k > 5)", False),
        (r"\text{ for roughly all integers } k", False),
        (r"\text{ for approximately } k \in \mathbb{Z}", False),
        (r"\text{ for integers } k \ge 5", False),
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


def test_a_condition_of_the_gold_may_be_written_in_another_way() -> None:
    gold = r"x^2 \text{ for } x > 0"
    for condition, right in (("0 < x", True), ("x \\in (0, \\infty)", True), ("x \\ge 0", True), ("x > 3", False)):
        assert verify(gold, rf"x^2 \text{{ for }} {condition}", timeout_s=10.0).correct is right, condition


INVERSE = r"Find the inverse of $f(x)=\sqrt{x+3}$ and state its domain."


@pytest.mark.parametrize(
    ("question", "gold", "answer", "right"),
    [
        (INVERSE, r"f^{-1}(x)=x^2-3, x\ge0", "f^{-1}(x)=x^2-3", False),
        (INVERSE, r"f^{-1}(x)=x^2-3, x\ge0", "x^2-3, x>0", False),
        (INVERSE, r"f^{-1}(x)=x^2-3, x\ge0", r"x^2-3, x\ge-3", False),
        (INVERSE, r"f^{-1}(x)=x^2-3, x\ge0", r"x^2-3 \text{ where } x\in[0,\infty)", True),
        (None, "n = 2k+1, k > 3", "n=2k+1", False),
        (None, "n = 2k+1, k > 3", "n=2k+1, 3<k", True),
        ("Let $k > 3$. Find n.", "n = 2k+1, k > 3", "n=2k+1", True),
        (None, r"2x, x\ne3", r"2x, x\ne 4", False),
        (None, r"x+3, x\ne3", "x+3", True),
        (None, r"\sqrt{x-2}, x\ge2", r"\sqrt{x-2}", True),
        (None, r"\frac1{a-b}, a\ne b", r"\frac1{a-b}", True),
        (None, r"\tan x, \cos x\ne0", r"\tan x", True),
        (None, "2x, 0<x<5", r"2x, x\in(0,5)", True),
        (None, r"2x, x\in(0,5)", "2x", False),
        (None, "a-b, a>b", "a-b", False),
        ("Let $a>b$. What is |a-b|?", "a-b, a>b", "a-b", True),
        (None, r"n^2, n\ge1", "n^2", True),
        (None, "x^2 (x>0)", "x^2", False),
        (None, r"y=9-x^2, -3\le x\le3", r"y=9-x^2, |x|\le3", True),
        (None, r"x, x\ge0; -x, x<0", "|x|", True),
        (None, "x^2, x>0", "x^2 given x > 0", True),
        (None, "x^2, x>0", r"x^2 \text{ given that } x > 0", True),
        (None, "x^2, x>0", "x^2 given x > 3", False),
        (None, "x^2", "x^2 given x > 0", False),
        (None, "7", "7 given n > 0", False),
        (None, "5", "given expression equals 5", True),
    ],
)
def test_a_condition_without_a_word_belongs_to_the_gold(
    question: str | None, gold: str, answer: str, right: bool
) -> None:
    assert verify(gold, answer, question=question, timeout_s=10.0).correct is right


RECIPROCAL = r"f(x)=\frac1x, x>0"


@pytest.mark.parametrize(
    ("question", "right"),
    [
        (r"Find all functions $f:\mathbb{R}^+\to\mathbb{R}^+$ with $f(xf(y))=y$.", True),
        (r"Find $f \colon \mathbb R^{+} \rightarrow \mathbb R$.", True),
        (r"Find all $f: \mathbb{R}_{>0} \to \mathbb{R}$.", True),
        (r"Find all $f:(0,\infty)\to(0,\infty)$.", True),
        (r"Find all functions $f$ on $(0,\infty)$.", True),
        (r"Let $f$ be defined on the interval $(0, 5)$. Find $f$.", True),
        (r"Find $f:\mathbb{R}\to\mathbb{R}^+$.", False),
        (r"Find $f:(-1,\infty)\to(0,\infty)$.", False),
        (r"Let $g:(0,\infty)\to\mathbb{R}$. Find $f$.", False),
        (r"Let $f:(0,\infty)\to\mathbb{R}$ or $f:(-5,5)\to\mathbb{R}$.", False),
        (r"The function $f$ is increasing on $(0,\infty)$.", False),
    ],
)
def test_the_domain_of_the_function_is_a_condition_of_the_question(question: str, right: bool) -> None:
    assert verify(RECIPROCAL, r"f(x)=\frac1x", question=question, timeout_s=10.0).correct is right
    assert verify(r"f(x)=\frac1x", RECIPROCAL, question=question, timeout_s=10.0).correct is right
    assert not verify(RECIPROCAL, r"f(x)=\frac1x, x>3", question=question, timeout_s=10.0).correct


SIGN = "Let $x$ be a positive real number. Simplify $\\sqrt{4x^2}$."


@pytest.mark.parametrize(
    ("question", "gold", "condition", "right"),
    [
        ("Let $x > 0$. Simplify $\\sqrt{4x^2}$.", "2x", "for $x > 0$", True),
        ("Let $x > 0$. Simplify $\\sqrt{4x^2}$.", "2x", "for $0 < x$", True),
        ("Let $x > 0$. Simplify $\\sqrt{4x^2}$.", "2x", "($x > 0$)", True),
        ("Let $x > 0$. Simplify $\\sqrt{4x^2}$.", "2x", "for $x \\ge 0$", True),
        ("Let $x > 0$. Simplify $\\sqrt{4x^2}$.", "2x", "for $x < 0$", False),
        ("Let $x > 0$. Simplify $\\sqrt{4x^2}$.", "2x", "for $x > 5$", False),
        ("Let x > 0. Simplify sqrt(4x^2).", "2x", "for x > 0", True),
        (SIGN, "2x", "for $x > 0$", True),
        (SIGN, "2x", "for positive $x$", True),
        (SIGN, "2x", "for negative $x$", False),
        (SIGN, "2x", "for $x > 1$", False),
        ("Let $k$ be a positive integer. Find it.", "k^2", "for $k \\ge 1$", True),
        ("Let $k$ be a positive integer. Find it.", "k^2", "for $k \\ge 2$", False),
        ("The number $n$ is odd. Where is the middle?", "\\frac{n+1}{2}", "for odd $n$", True),
        ("The number $n$ is odd. Where is the middle?", "\\frac{n+1}{2}", "for even $n$", False),
        ("Let $a > b$. What is $|a-b|$?", "a-b", "if $a > b$", True),
        ("Let $a > b$. What is $|a-b|$?", "a-b", "if $b < a$", True),
        ("Let $a > b$. What is $|a-b|$?", "a-b", "if $a < b$", False),
        ("What is $f(n)$ at $n = 2$?", "7", "for $n = 2$", True),
        ("What is $f(n)$ at $n = 2$?", "7", "for $n = 3$", False),
        ("What is $|x|$ for $x > 0$, and for $x < 0$?", "x", "for $x < 0$", False),
        ("What is $|x|$ for $x > 0$, and for $x < 0$?", "x", "for $x > 0$", False),
        ("Let $x$ and $y$ be positive integers.", "x+y", "for $x > 0$ and $y > 0$", True),
        ("Let $x$ and $y$ be positive integers.", "x+y", "for $x > 0$ and $y > 3$", False),
    ],
)
def test_a_condition_of_the_question_may_be_repeated_and_not_contradicted(
    question: str, gold: str, condition: str, right: bool
) -> None:
    answer = f"${gold}$ {condition}"
    assert verify(gold, answer, question=question, timeout_s=10.0).correct is right
    if "\\ge 1" not in condition:
        assert not verify(gold, answer, timeout_s=10.0).correct


def test_a_condition_in_the_name_of_a_probability_is_a_part_of_the_name() -> None:
    assert verify(r"\frac16", "P(X = 6) = 1/6", timeout_s=10.0).correct
