"""Texts that no parser should see are refused before one does, at once; ordinary ones are not."""

from __future__ import annotations

import statistics
import time

import pytest

from rstar2_env.verification import Reason, verify
from rstar2_env.verification.guards import too_large

TOO_LARGE = [
    r"9^{9^{9^9}}",
    r"10^{10^{10}}",
    r"2^{10^9}",
    "9**9**9**9",
    r"7^{7^{7^{7^7}}}",
    r"e^{e^{e^{e^e}}}",
    r"\frac{1}{10^{10^{10}}}",
    r"(10^7)!",
    r"(10^9)!",
    "1000000!",
    "9!!!!",
    r"\binom{10^9}{5\cdot10^8}",
    r"\binom{1000000}{500000}",
    "2^{1000000}",
    "9" * 4_000,
    "(" * 60 + "1" + ")" * 60,
    "{" * 2_000 + "}" * 2_000,
    r"\left(" * 40 + "1" + r"\right)" * 40,
    "x+" * 3_000 + "x",
]

ORDINARY = [
    r"e^{-x^2/2}",
    r"2^{2^{n}}",
    r"\left(\frac{\sqrt{1+\sqrt{2}}}{\left(1+\frac{1}{x}\right)^{2}}\right)^{\frac{1}{3}}",
    r"\{(\frac{1}{2}, \begin{pmatrix} \frac{a}{b} & 1 \\ 0 & \sqrt{2} \end{pmatrix})\}",
    r"\cos(e^{x^{2}})^{2} + \sin(e^{x^{2}})^{2}",
    "2004!",
    r"\binom{100}{50}",
    "10^{100}",
    "x^{100}",
    "3" * 200,
    "Yes!!!",
    ", ".join(f"({n}, {n + 1})" for n in range(100)),
]


@pytest.mark.parametrize("text", TOO_LARGE)
def test_a_text_out_of_proportion_is_too_large(text: str) -> None:
    assert verify("7", text).reason is Reason.TOO_LARGE


@pytest.mark.parametrize("text", TOO_LARGE)
def test_a_gold_out_of_proportion_is_the_data_sets_fault(text: str) -> None:
    assert verify(text, "7").reason is Reason.UNPARSABLE_GOLD


@pytest.mark.parametrize("text", TOO_LARGE)
def test_the_same_text_is_right_however_large(text: str) -> None:
    assert verify(text, text).correct


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_answers_pass_the_guards(text: str) -> None:
    assert too_large(text) is None


@pytest.mark.parametrize("unit", ["^", "^{", "!", "(", "**", "9^", r"\binom{", "1!"])
def test_the_guards_take_time_in_proportion_to_the_length(unit: str) -> None:
    # Times of one text and of one eight times as long, taken in turns: a scan that is not linear is slower by 64.
    short, long = unit * (480 // len(unit)), unit * (3_840 // len(unit))
    ratio = statistics.median(_cpu(long) / _cpu(short) for _ in range(9))
    assert ratio < 24


def _cpu(text: str) -> float:
    """CPU seconds of this thread for one look at a text, the least of five."""

    def once() -> float:
        start = time.thread_time()
        too_large(text)
        return time.thread_time() - start

    return min(once() for _ in range(5))
