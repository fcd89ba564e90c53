"""What other verifiers are known to accept and ours must not."""

from __future__ import annotations

import pytest

from rstar2_env.verification import Reason, verify


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
        (r"\frac1{2^{99}}", r"\frac1{2^{98}}"),
        ("10^{-30}", "10^{-31}"),
        ("10^{-8}", "0.00000002"),
        ("33", "33%"),
        ("33%", "33"),
        ("3 cm", "3 m"),
        (r"3\text{ cm}", r"3\text{ m}"),
        ("(1,2)", "{1,2}"),
        (r"(1,2)", r"\{1,2\}"),
        (r"\{1,2\}", "(2,1)"),
        ("1", r"\pm1\pm1"),
        ("1", "1,1,1,1"),
        ("1", "1e5"),
        (r"\pi", "3.141593"),
        ("8", r"\boxed{7}. The final answer is $8$. I hope it is correct."),
        ("1", "1=1"),
        ("x", "x=x"),
        (r"e^{\pi\sqrt{163}}", "262537412640768744"),  # agrees to thirty digits
        ("0", "e^{-1000}"),
        ("1 - \\frac{1}{e}", "1 + \\frac{1}{e}"),
        (r"(20, \pi-\arctan 3)", "no solution"),
        ("3", "3/M^3"),
        ("A", "n"),
        ("tea", "eat"),
        ("f(x)", "f(y)"),
        ("|x|", "x"),
        ("|x-10|", "10-x"),
        ("|x-1000|", "1000-x"),
        (r"\sqrt{(x-20)^2}", "20-x"),
        (r"\max(x, 50)", "50"),
        ("|xy|", "xy"),
        ("a+b+c", "a+b+c+1"),
        ("n+k-1", "n+k"),
        ("A+B+C", "A+B+C+180"),
        ("2c", "2k"),
        ("2n", "2k"),
        ("$C$ is not invertible", "$B=C$"),
        ("$n$ is even", "$n$ is odd"),
        ("$n$ is even", "n"),
        ("New York", "New"),
        ("New York", "New York table"),
        ("New York table", "New York"),
        ("La Paz", "Paz La"),
        ("tin, lead", "nit, lead"),
        ("Paris", "London = Paris"),
        ("cats", "dogs: cats"),
        ("7", "7 is wrong"),
        ("7", r"7 \text{ is not the answer}"),
        ("e^{x^{4}}", "e^{x^{4}} - 12"),
        ("e^{1000}", "e^{1000}+1"),
        (r"2^{2010}\pi", r"2^{2010}\pi+1"),
        (r"x^{100}", r"x^{100}+x"),
        (r"e^{50x}", r"e^{50x}+e^{-50x}"),
        (r"f(x) = x \text{ for } x > 0", r"f(x) = x \text{ for } x < 0"),
    ],
)
def test_a_known_false_positive_is_refused(gold: str, answer: str) -> None:
    assert not verify(gold, answer, timeout_s=10.0).correct


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("5050", r"\sum_{k=1}^{100} k"),
        (r"\frac13", r"\int_0^1 x^2\,dx"),
        ("7", r"\gcd(14, 21)"),
        ("6", r"\operatorname{lcm}(2, 3)"),
        ("1", r"\lim_{x \to 0} \frac{\sin x}{x}"),
        ("120", r"\prod_{k=1}^{5} k"),
        ("120", "5!"),
        ("120", r"\binom{10}{3}"),
        ("2", r"5 \bmod 3"),
        ("-2", r"\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix}"),
        ("3", r"\max(1, 2, 3)"),
        ("3", r"\lfloor 3.7 \rfloor"),
        ("i", r"\sqrt{-1}"),
        ("-1", r"e^{i\pi}"),
        ("-i", r"\frac{1}{i}"),
        ("1024", "2^{10}"),
        ("171", "46+30+95"),
        (r"\frac{1}{2}", r"\sin 30^\circ"),
        ("5", "|3+4i|"),
        ("16", "(1+i)^8"),
        ("1", r"\tanh 1000"),
        (r"\frac{\pi}{4}", r"\arctan 1"),
        ("1", r"\sin^2 x + \cos^2 x"),
        ("4x", r"x \log_2 16"),
    ],
)
def test_work_left_undone_is_no_answer(gold: str, answer: str) -> None:
    assert verify(gold, answer, timeout_s=10.0).reason is Reason.NO_ANSWER


@pytest.mark.parametrize(
    "answer",
    ["7, 8", "8, 7", "7 or 8", r"7 \text{ or } 8", "5;6;7", r"\{7, 8\}", "(7, 8)", r"7 \pm 1", "7, 7", "not 7"],
)
def test_several_candidates_answer_nothing(answer: str) -> None:
    assert not verify("7", answer, timeout_s=10.0).correct


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("300 s", "5 min"),
        (r"60^\circ", r"\frac{\pi}{3}"),
        ("1000", r"1\,000"),
        ("0.5", "0,5"),
        (r"(-\infty,3)", "x<3"),
        ("DNE", r"\text{does not exist}"),
        ("100000", "1e5"),
        ("6", r"\boxed{5}. No wait, \boxed{6}"),
        ("(a+b)(b+c)(c+a)", "(a+c)(c+b)(b+a)"),
    ],
)
def test_what_others_are_known_to_refuse_is_right(gold: str, answer: str) -> None:
    assert verify(gold, answer, timeout_s=10.0).correct
