"""Whole responses as models write them: where the answer stands in them, and what denies it."""

from __future__ import annotations

import pytest

from rstar2_env.dialects.fenced import FencedDialect
from rstar2_env.dialects.rstar2 import Rstar2Dialect
from rstar2_env.verification import Reason, verify, verify_response

GIVEN = [
    ("210", "The answer is: 210."),
    ("18", "Janet sells 9 eggs.\n#### 18"),
    ("#### 18", "18"),
    ("She has 16-3-4=9 eggs.\n#### 18", "So the answer is 18."),
    ("7", "I have thought. I think it is 7."),
    ("8", r"\boxed{7}. No, \boxed{8}"),
    ("210", "**Answer: 210**"),
    ("210", "Final Answer: The final answer is $210$. I hope it is correct."),
    ("18", "答案是18。"),
    ("18", "答えは18です。"),
    ("18", "La respuesta es 18."),
    ("18", "La réponse est : 18"),
    ("18", "Die Antwort ist 18."),
    ("18", "Ответ: 18"),
    ("18", "Jibu ni 18."),
    ("18", "উত্তর হল 18।"),
    ("18", "คำตอบคือ 18"),
    ("1,234", "So there are 1,234 of them."),
    ("B", "The correct answer is (B)."),
    ("B", "The correct answer is B) 12"),
    (r"\frac{1}{2}", r"The answer is \frac{1}{2}."),
    ("3.5", "The answer is 3.5."),
    ("5", "The answer is 5!"),
    ("5", "Answer:\n5"),
    ("5", "The answer is $x=5$."),
    ("-3", "The answer is -3"),
    ("1/2", "The answer is 1/2."),
    ("72", "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\n#### 72"),
    ("(1,2)", "The answer is (1,2)."),
    ("10", "The answer is 10. The check: 3+7=10."),
]

NOT_GIVEN = [
    ("7", "It cannot be 7"),
    ("7", "I think it is 7."),
    ("7", "The answer is not 7."),
    ("7", "The answer can't be 7"),
    ("7", r"\boxed{7}. No, \boxed{8}"),
    ("12", "We get x = 12 after 3 steps."),
    ("7", "7 is not the answer"),
    ("7", "There is no solution, 7 fails."),
    ("7", "The answer is neither 7 nor 8."),
    ("7", "Therefore 7 is impossible."),
    ("7", "The value is anything but 7"),
    ("20", r"The answer is 20\%."),
    ("10", "The answer: it is unknown."),
    ("9", "\\boxed{8}\n\n```output\n\\boxed{9}\n```"),
    ("9", "<tool_response>\n\\boxed{9}\n</tool_response>"),
    ("9", "```python\nprint('\\boxed{9}')\n```"),
    ("9", "% \\boxed{9}\nI do not know."),
    ("9", "<!-- \\boxed{9} --> I do not know."),
]


@pytest.mark.parametrize(("gold", "response"), GIVEN)
def test_the_answer_of_a_response_is_found(gold: str, response: str) -> None:
    assert verify_response(gold, response, timeout_s=10.0).correct


@pytest.mark.parametrize(("gold", "response"), NOT_GIVEN)
def test_what_a_response_does_not_answer_is_not_right(gold: str, response: str) -> None:
    assert not verify_response(gold, response, timeout_s=10.0).correct


BOXES = [pair for pair in (*GIVEN, *NOT_GIVEN) if "boxed" in pair[1]]


@pytest.mark.parametrize(("gold", "response"), BOXES)
def test_dialects_find_the_boxes_that_a_response_has(gold: str, response: str) -> None:
    expected = verify_response(gold, response, timeout_s=10.0).correct
    for said in (FencedDialect().answer([response]), Rstar2Dialect().answer([f"<answer>{response}</answer>"])):
        assert verify(gold, said, timeout_s=10.0).correct is expected


@pytest.mark.parametrize(
    ("question", "answer", "right"),
    [
        ("What percentage of the cars are red?", r"20\%", True),
        ("What percent is that?", "20%", True),
        ("He gets a discount of 20 percent. How much does he pay?", "20%", False),
        ("How many cars are red?", "20%", False),
        ("What percentage of the cars are red?", "0.2", False),
        ("Quel est le pourcentage des voitures rouges ?", "20 %", True),
    ],
)
def test_a_percentage_is_right_for_a_bare_gold_where_the_question_asks_for_one(
    question: str, answer: str, right: bool
) -> None:
    assert verify("20", answer, question=question, timeout_s=10.0).correct is right


@pytest.mark.parametrize("make", [r"\frac{{{n}}}{{{m}}}", r"{n}+\sqrt{{{m}}}", r"x+{n}"])
def test_two_equal_sets_of_199_elements_are_equal_in_time(make: str) -> None:
    texts = [make.format(n=n, m=2 * n + 1) for n in range(1, 200)]
    one, other = (",".join(order) for order in (texts, sorted(texts, key=lambda text: text[::-1])))
    verify("x+1", "1+x", timeout_s=60.0)
    assert verify(rf"\{{{one}\}}", rf"\{{{other}\}}").reason is Reason.EQUAL
    assert verify(rf"\{{{one}\}}", rf"\{{{other},7777\}}", timeout_s=20.0).reason is not Reason.EQUAL


@pytest.mark.parametrize(
    "answer", ["[__import__('os').getpid(),\\pi]", "__import__('os').getpid()*\\pi", "[exit(1), 2]"]
)
@pytest.mark.parametrize("gold", [r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\pi", "3.14"])
def test_an_answer_is_never_run_as_a_program(gold: str, answer: str) -> None:
    assert not verify(gold, answer, timeout_s=10.0).correct
