"""Boxes are found where a model puts them."""

from __future__ import annotations

import time

import pytest

from rstar2_env.verification import boxed_answer, extract_boxed, last_boxed


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


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"I won't use <tool_call> here: \boxed{5}", "5"),
        (r"According to the <tool_response>: \boxed{5}", "5"),
        (r"see <tool_response>\boxed{5}</tool_response>", None),
        ("text\n  <TOOL_RESPONSE> \\boxed{5}", None),
        ('run <tool_call>\n{"name": "\\boxed{5}', None),
        (r"<!-- \boxed{5}", "5"),
        (r"x <!-- \boxed{5} --> \boxed{6}", "6"),
        ("The share is 12\n% and so \\boxed{12}.", "12"),
        ("The share is $12$\r\n% and so \\boxed{12}.", "12"),
        ("\\boxed{7}\n% \\boxed{8}", "7"),
        ("x = 50\n% \\boxed{7}\nfinal \\boxed{3}", "3"),
        ("x = 50\n% $\\boxed{7}$\nfinal \\boxed{3}", "3"),
        ("x = 50\n%\n\\boxed{7}", "7"),
        ("\\boxed{50\n%}", "50\n%"),
        (r"\boxed{a <!-- b --> c}", "a <!-- b --> c"),
        ("```python\nx = '\\boxed{'\n```\n<tool_response>\\boxed{5}</tool_response> }", None),
        ("```python\nprint(5)\n\\boxed{6}", "6"),
    ],
)
def test_a_tag_or_a_percent_sign_in_a_sentence_hides_no_box(text: str, answer: str | None) -> None:
    assert boxed_answer(text) == answer
