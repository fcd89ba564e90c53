"""Answers are found in whole texts, and the known ways to find the wrong one are closed."""

from __future__ import annotations

import time

import pytest

from rstar2_env.verification import extract_answer, verify, verify_response
from rstar2_env.verification.read import boxed
from rstar2_env.verification.read.boxed import boxed_answer, gold_answer, last_boxed_answer, without_tool_text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("42", "42"),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        (r"So the area is $\boxed{12}$ square units.", "12"),
        (r"The loss is $\boxed{28}$ percent.", "28%"),
        ("Final Answer: The final answer is $16$. I hope it is correct.", "16"),
        ("Final Answer: The largest $n$ is 34.", "34"),
        ("The answer is 12.5, as was to be shown.", "12.5"),
        ("We find that $x \\lt 3$.", "x \\lt 3"),
        ("It is not 10. The number is 1,000.99€.", "1,000.99€"),
        ("the number is not 10 which is 1,000.99€", None),  # one sentence without a mark
        ("20 instead of 25 or 25 instead of 20", None),
        ("I think the correct answer is C", "C"),
        ("The answer is D, it can't be A or B.", "D"),
        (r"\boxed{7} <|im_start|>user: what is \boxed{8}", "7"),
        (r"<think>perhaps \boxed{3}</think> It is \boxed{4}", "4"),
        ("There is nothing to be found in this sentence", None),
    ],
)
def test_the_answer_of_a_text_is_found(text: str, answer: str | None) -> None:
    assert extract_answer(text) == answer


# The checklist of failures that MATH-Beyond reports for answer extraction.
@pytest.mark.parametrize(
    ("gold", "response", "right"),
    [
        ("8", r"First \boxed{7}, then after the check \boxed{8}.", True),  # the first box instead of the last
        ("7", r"First \boxed{7}, then after the check \boxed{8}.", False),
        ("12", r"We get $3 \cdot 2 = 6$, and $6 \cdot 2 = 12$. The answer is 12.", True),  # an intermediate result
        ("6", r"We get $3 \cdot 2 = 6$, and $6 \cdot 2 = 12$. The answer is 12.", False),
        ("5", r"\boxed{4}. Now everything above was a draft. \boxed{5}", True),  # a late overwrite
        ("6", r"\boxed{5}. No wait, that is wrong: \boxed{6}", True),  # a self-correction
        ("5", r"\boxed{5}. No wait, that is wrong: \boxed{6}", False),
        ("(1, 2)", r"\boxed{(1, 2)}", True),  # the order of a tuple
        ("(1, 2)", r"\boxed{(2, 1)}", False),
        ("42", "Adding up: 40 and 2. We arrive at 42", True),  # no "Answer:" before it
        ("B", r"The answer is (B).", True),  # the dress of a choice
        ("B", r"\boxed{\text{(B)}}", True),
        ("B", r"\boxed{C}", False),
    ],
)
def test_known_failures_of_extraction_do_not_happen(gold: str, response: str, right: bool) -> None:
    assert verify_response(gold, response, timeout_s=10.0).correct is right


def test_prose_never_beats_the_box() -> None:
    response = r"\boxed{7}. The final answer is $8$. I hope it is correct."
    assert verify("7", response).correct
    assert not verify("8", response).correct
    assert not verify_response("8", response).correct


def test_boxes_that_only_and_joins_may_be_one_list() -> None:
    response = r"\boxed{(2, 2)} \quad \text{and} \quad \boxed{(6, 2)}"
    assert boxed_answer(response) == "(2, 2), (6, 2)"
    assert verify("(2, 2), (6, 2)", response, timeout_s=10.0).correct
    assert not verify("(2, 2)", response, timeout_s=10.0).correct
    assert boxed_answer(r"\boxed{5}. No wait, \boxed{6}") == "6"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{7} oder \boxed{8}", "7, 8"),
        (r"\boxed{7} <!-- --> \boxed{8}", "7, 8"),
        (r"\boxed{7} \text{ for part (a) and } \boxed{8}", "7, 8"),
        (r"\boxed{7} \text{ and also } \boxed{7}", "7"),
        (r"It is \boxed{25}\%.", "25%"),
        (r"\boxed{25\%} percent", "25\\%"),
        (r"\boxed{7} million", "7 million"),
        (r"\boxed{7} millions of years ago", "7"),
        (r"\boxed{7} apples", "7"),
        (r"It is not \boxed{7}", None),
        (r"It isn't \boxed{7}", None),
        (r"That is not hard: \boxed{7}", "7"),
        (r"The number of students who do not play is \boxed{7}", "7"),
        (r"It is not hard to see that $x = \boxed{3}$", "3"),
        (r"It cannot be $\boxed{3}$", None),
        (r"The answer is not equal to \boxed{3}", None),
        ("7", None),
    ],
)
def test_boxes_with_the_text_around_them_are_one_answer(text: str, answer: str | None) -> None:
    assert boxed_answer(text) == answer


def test_the_last_turn_with_a_box_is_the_answer_and_its_programs_are_removed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    removed: list[str] = []

    def remove(text: str) -> str:
        removed.append(text)
        return without_tool_text(text)

    monkeypatch.setattr(boxed, "without_tool_text", remove)
    turns = ["% \\boxed{8}", r"It is \boxed{7} million", r"\boxed{9}"]
    assert last_boxed_answer(turns) == "7 million"
    assert removed == turns[:2]
    assert last_boxed_answer([r"It is not \boxed{7}", r"\boxed{9}"]) is None


def test_results_of_tools_and_programs_are_not_read() -> None:
    for text in (
        "<tool_response>7</tool_response>",
        "<tool_call>7",
        "```output\n7\n```",
        "Run it.\n```python\nprint('The answer is 7')\n```\nDone. Good.",
    ):
        assert not verify_response("7", text).correct
    assert verify_response("7", "```output\n8\n```\nThe answer is 7").correct
    assert verify_response("7", "```python\nprint(1)```\nSo it is \\boxed{7}").correct
    assert verify_response("7", "```python\nprint(1)\nSo it is \\boxed{7}").correct


def test_a_gold_may_box_its_parts() -> None:
    assert gold_answer(r"\boxed{1} papers and \boxed{2} bins") == "1, 2"
    assert gold_answer(r"\boxed{1} and then, after much thought, \boxed{2}") == "2"
    assert gold_answer(r"\boxed{W(n) = 1") == "W(n) = 1"


@pytest.mark.parametrize(
    "text", ["$" * 100_000, "answer is " * 20_000, "1 " * 60_000, r"\[" * 50_000, "a" * 190_000, "1," * 90_000]
)
def test_extraction_is_linear_in_the_text(text: str) -> None:
    start = time.perf_counter()
    verify_response("7", text, timeout_s=1.0)
    assert time.perf_counter() - start < 10.0
