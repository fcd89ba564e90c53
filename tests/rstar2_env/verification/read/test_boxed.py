"""Boxes are found where a model puts them."""

from __future__ import annotations

import time

import pytest

from rstar2_env.verification import extract_boxed, last_boxed


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{7}", "7"),
        (r"so \boxed{7}. No wait, \boxed{8}", "8"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{x \mid x>0\right\}}", r"\left\{x \mid x>0\right\}"),
        (r"\fbox{42}", "42"),
        (r"\boxed {42}", "42"),
        ("\\boxed\n{ 42 }", "42"),
        (r"$\boxed{$42$}$", "42"),
        (r"$$\boxed{42}$$", "42"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed 7", "7"),
        (r"\boxed{}", ""),
        (r"\boxed{7} and then \boxed{8", "7"),
        (r"\boxed{ \boxed{3}", "3"),
        ("no box at all", None),
        ("", None),
    ],
)
def test_the_last_balanced_box_is_the_answer(text: str, answer: str | None) -> None:
    assert last_boxed(text) == answer


def test_all_boxes_come_in_the_order_of_the_text() -> None:
    assert extract_boxed(r"\boxed{1}, \fbox{2} and \boxed{\frac34}") == ["1", "2", r"\frac34"]


@pytest.mark.parametrize("text", [r"\boxed{" * 20_000, r"\boxed{{" * 20_000, "{" * 100_000, r"\boxed" * 50_000])
def test_a_wall_of_openings_costs_no_square(text: str) -> None:
    start = time.perf_counter()
    last_boxed(text)
    assert time.perf_counter() - start < 5.0
