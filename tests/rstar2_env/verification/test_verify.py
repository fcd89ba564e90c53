"""``verify`` and its twins: reasons, options, threads, event loops, forks."""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.verification import Reason, averify, verify, verify_many, verify_response
from rstar2_env.verification.workers.pool import shared_pool


@pytest.mark.parametrize(
    ("gold", "answer", "reason"),
    [
        ("7", "7", Reason.EQUAL),
        ("7", "8", Reason.DIFFERENT),
        ("x+1", "1+x", Reason.EQUAL),
        ("x+1", "x+2", Reason.DIFFERENT),
        ("7", None, Reason.NO_ANSWER),
        ("7", "", Reason.NO_ANSWER),
        ("7", "   ", Reason.NO_ANSWER),
        ("7", r"\boxed{}", Reason.NO_ANSWER),
        ("24", "4!", Reason.NO_ANSWER),
        ("7", r"\frac{1}{", Reason.UNPARSABLE_ANSWER),
        (r"\frac{1}{", "7", Reason.UNPARSABLE_GOLD),
        ("", "7", Reason.UNPARSABLE_GOLD),
        ("7", "9^{9^{9^9}}", Reason.TOO_LARGE),
        ("even", "odd", Reason.DIFFERENT),
    ],
)
def test_each_outcome_has_its_own_reason(gold: str, answer: str | None, reason: Reason) -> None:
    verdict = verify(gold, answer, timeout_s=10.0)
    assert verdict.reason is reason
    assert verdict.correct is (reason is Reason.EQUAL)
    assert verdict.seconds >= 0


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "vibes"},
        {"undone": "everything"},
        {"tolerance": -1.0},
        {"tolerance": float("nan")},
        {"timeout_s": 0.0},
        {"timeout_s": float("inf")},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        verify("7", "7", **options)


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\u202e7", "7\x00", "\\" * 50, "𝟕", "＄７", "\\text{\ud83d}"])
def test_no_text_makes_it_raise(text: str) -> None:
    assert isinstance(verify("7", text, timeout_s=10.0).correct, bool)
    assert isinstance(verify(text, "7", timeout_s=10.0).correct, bool)


def test_a_choice_ignores_case_only_when_the_problem_is_one() -> None:
    assert verify("B", "b", kind="choice").correct
    assert not verify("B", "b").correct
    assert verify("B", "12", kind="choice").reason is Reason.UNPARSABLE_ANSWER


QUANTITIES = "Compare. (A) Quantity A is greater. (B) Quantity B is greater. (C) They are equal."
NUMBERS = "Pick one: (A) 10 (B) 12 (C) 14"
IN_LATEX = r"Value? $\textbf{(A)}\ 10 \qquad\textbf{(B)}\ \frac{1}{2} \qquad\textbf{(C)}\ 14$"
FRACTIONS = "Which is it? (A) 1/2 (B) 3/4 (C) 1/3\nAnswer with one letter."
SUM = "What is 1 + 2 + 3 + 4? (A) 10 (B) 12"
LINES = "What is it?\nA. red\nB. blue\nC. blue green"


@pytest.mark.parametrize(
    ("question", "gold", "answer", "right"),
    [
        (QUANTITIES, "A", "Quantity A > Quantity B", True),
        (QUANTITIES, "A", "Quantity A < Quantity B", False),
        (QUANTITIES, "A", "Quantity B is greater", False),
        (QUANTITIES, "A", "(A) Quantity B is greater", False),
        (NUMBERS, "B", "12", True),
        (NUMBERS, "B", "14", False),
        (NUMBERS, "B", "(B) 12", True),
        (NUMBERS, "B", "(B) 14", False),
        (NUMBERS, "B", "(B) is wrong", False),
        (IN_LATEX, "B", r"\textbf{(B) } \frac12", True),
        (IN_LATEX, "B", "1/2", True),
        (IN_LATEX, "B", "(B) 14", False),
        (LINES, "B", "blue", True),
        (LINES, "B", "B. blue green", False),
        ("Is it A or B?", "B", "12", False),
        (FRACTIONS, "B", "(B) 0.5", False),
        (FRACTIONS, "B", "(B) 0.6", False),
        (FRACTIONS, "B", "(B) 0.75", True),
        (FRACTIONS, "B", "0.75", True),
        (FRACTIONS, "C", "(C) 0.33", True),
        (FRACTIONS, "C", "1/3", True),
        (FRACTIONS, "C", "1/4 + 1/12", False),
        (SUM, "A", r"\sum_{k=1}^{4} k", False),
        ("Pick.\n(A)\n7\n(B)\n8\nReply with a letter.", "B", "8", True),
    ],
)
def test_the_text_after_a_letter_or_without_one_is_that_of_the_option(
    question: str, gold: str, answer: str, right: bool
) -> None:
    assert verify(gold, answer, question=question, timeout_s=10.0).correct is right


def test_the_kind_number_reads_nothing_else() -> None:
    assert verify("4", "4.0", kind="number").correct
    assert verify("4", "2^2", kind="number").reason is Reason.UNPARSABLE_ANSWER
    assert verify("2^2", "4", kind="number").reason is Reason.UNPARSABLE_GOLD


@pytest.mark.parametrize(
    ("answer", "undone", "right"),
    [
        ("1+1", "arithmetic", True),
        ("1+1", "none", False),
        (r"\frac{4}{2}", "none", False),
        (r"\frac{4}{2}", "arithmetic", True),
        ("4:2", "none", False),
        (r"2", "none", True),
        (r"\sum_{k=1}^{2} 1", "arithmetic", False),
        (r"\sum_{k=1}^{2} 1", "any", True),
    ],
)
def test_how_much_work_may_be_left_is_an_option(answer: str, undone: str, right: bool) -> None:
    assert verify("2", answer, undone=undone, timeout_s=10.0).correct is right


def test_an_expression_copied_from_the_question_is_no_answer() -> None:
    question = r"Expand $(x+1)(x-1)$."
    assert verify("x^2-1", "(x+1)(x-1)", question=question).reason is Reason.NO_ANSWER
    assert verify("x^2-1", "(x+1)(x-1)").correct
    assert verify("x^2-1", "x^2 - 1", question=question).correct
    assert verify("odd", "odd", question="Is 7 even or odd?").correct


def test_lenient_rules_accept_a_phrase_of_a_gold_sentence() -> None:
    gold = "Petya will receive the last token."
    assert verify(gold, "Petya", strict=False).correct
    assert not verify(gold, "Petya").correct
    assert not verify("It is not odd.", "odd", strict=False).correct


def test_many_verdicts_come_in_order() -> None:
    pairs = [(f"x^{{{n}}}", f"x^{{{n + n % 2}}}") for n in range(40)] + [("1", "1"), ("1", None)]
    verdicts = verify_many(pairs, timeout_s=10.0)
    assert [verdict.correct for verdict in verdicts] == [n % 2 == 0 for n in range(40)] + [True, False]


def test_it_works_from_many_threads_at_once() -> None:
    def one(n: int) -> bool:
        return verify(f"x + {n}", f"{n} + x", timeout_s=10.0).correct

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(64)))


def test_the_event_loop_goes_on_while_a_worker_computes() -> None:
    async def main() -> tuple[list[bool], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticker = asyncio.create_task(tick())
        verdicts = await asyncio.gather(*(averify("x+1", f"x+{n}", timeout_s=10.0) for n in range(8)))
        ticker.cancel()
        return [verdict.correct for verdict in verdicts], ticks

    correct, ticks = asyncio.run(main())
    assert correct == [n == 1 for n in range(8)]
    assert ticks > 1


def test_a_forked_child_has_workers_of_its_own(ended: Callable[[int], bool]) -> None:
    assert verify("x+1", "1+x", timeout_s=10.0).correct
    parents = set(shared_pool().pids())
    assert parents
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()

    def child() -> None:
        right = verify("x+1", "1+x", timeout_s=10.0).correct
        results.put((right, shared_pool().pids()))

    process = context.Process(target=child)
    process.start()
    right, children = results.get()
    process.join(30)
    assert right
    assert children
    assert not parents & set(children)
    assert verify("y+1", "1+y", timeout_s=10.0).correct
    assert parents & set(shared_pool().pids())
    assert all(ended(pid) for pid in children)


def test_a_thread_that_ends_does_not_take_its_worker_with_it() -> None:
    # The kernel's parent-death signal fires at the end of the thread that forked.
    thread = threading.Thread(target=lambda: verify("x+1", "1+x", timeout_s=10.0))
    thread.start()
    thread.join()
    before = set(shared_pool().pids())
    assert verify("y+2", "2+y", timeout_s=10.0).correct
    assert before & set(shared_pool().pids())


def test_a_whole_response_is_graded_by_the_answer_in_it() -> None:
    response = r"We add $3+4=7$ and double it: the final answer is $\boxed{14}$. I hope it is correct."
    assert verify_response("14", response).correct
    assert not verify_response("7", response).correct
    assert verify_response(r"So $x = \boxed{14}$.", "14").correct
    assert verify_response("14", None).reason is Reason.NO_ANSWER


def test_a_comparison_without_math_verify_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['math_verify'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'math_verify' else find(name, *more)\n"
        "from rstar2_env.verification.api import math_verify_alone, verify\n"
        "assert verify('1/2', '0.5').correct and verify('x+1', '1+x').correct\n"
        "math_verify_alone('1', '1')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=400)
    assert "MissingExtraError" in done.stderr
    assert "pip install 'rstar2-env[math-verify]'" in done.stderr


@pytest.mark.parametrize("ask", [verify, lambda gold, answer: verify_many([(gold, answer)]), verify_response])
@pytest.mark.parametrize(
    ("gold", "answer", "words"),
    [
        (5, "5", r"gold must be a string, not 5 \(int\)\. Write it as a string, such as '5'"),
        ("5", 5.0, r"answer must be a string or None, not 5\.0 \(float\)"),
        (None, "5", "gold must be a string, not None"),
        (None, None, "gold must be a string, not None"),
    ],
)
def test_an_answer_that_is_no_text_is_told(ask: Any, gold: Any, answer: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ask(gold, answer)


@pytest.mark.parametrize(
    ("question", "gold", "answer"),
    [
        (r"Simplify $\sqrt{245}$.", r"7\sqrt5", r"\sqrt{245} \approx 10^{77}"),
        (r"Simplify $\sqrt{245}$.", r"7\sqrt5", r"z = \sqrt{245} \sim 1"),
        (r"Simplify $\sqrt{245}$.", r"7\sqrt5", r"\sqrt{245} : 1"),
        (r"Simplify $\sqrt{245}$.", r"7\sqrt5", r"i^4 \sqrt{245}"),
        (r"Expand $(x+1)^2$.", "x^2+2x+1", r"\begin{cases} (x+1)^2 & x>0 \\ (x+1)^2 & x \le 0 \end{cases}"),
        (r"Approximate $\cos(e)$.", r"\cos(e) \approx -0.912", r"\cos(e) \approx 10^{77}"),
        ("What is added to x^2?", "x^2+2", r"(x^2+2) \bmod 10^{30}"),
    ],
)
def test_a_dressed_formula_of_the_question_is_not_paid(question: str, gold: str, answer: str) -> None:
    assert not verify(gold, answer, question=question, timeout_s=10.0).correct


@pytest.mark.parametrize(
    ("question", "gold", "answer", "right"),
    [
        ("Write 0.000744 in scientific notation.", r"7.44 \times 10^{-4}", "0.000744", False),
        ("Write $0.000744$ in scientific notation.", r"7.44 \times 10^{-4}", "0.000744", False),
        (r"Compute $2 \cdot 0.000372$ in scientific notation.", r"7.44 \times 10^{-4}", "0.000744", True),
        ("Reduce 8/12.", r"\frac{2}{3}", r"\frac{8}{12}", False),
    ],
)
def test_a_number_is_an_echo_only_if_the_question_has_it(question: str, gold: str, answer: str, right: bool) -> None:
    assert verify(gold, answer, question=question, timeout_s=10.0).correct is right


_WORK = "How much energy is needed, in joules?"
_RISE = "What is the percentage increase of the price? It was 20 less."


@pytest.mark.parametrize(
    ("question", "gold", "answer", "right"),
    [
        (_WORK, "350", "350 J", True),
        (_WORK, "350", "0.35 kJ", True),
        (_WORK, "350", "350 kJ", False),
        (_WORK, "350", "350 N", False),
        ("It takes 350 kJ. How much is left, in joules?", "350", "350 kJ", True),
        (_RISE, "15%", "15% increase", True),
        (_RISE, "15", "15 percent increase", True),
        (_RISE, "15%", "15% decrease", False),
        (_RISE, "15%", "15% less", False),
        ("What share is red?", "15%", "15% increase", False),
        ("What is the remainder of 33 modulo 20?", "13", r"13 \pmod{20}", True),
        ("How many of 20 eggs are left?", "13", r"13 \pmod{20}", False),
        ("About how many days does it take?", "13", "about 13", True),
        ("How many days does it take?", "13", "about 13", False),
        ("How many days does it take?", "13", "13 approximately", False),
        ("How many days does it take?", "13", r"\approx 13", False),
        ("How many days does it take?", "13", "~13", False),
    ],
)
def test_the_question_says_what_its_number_means(question: str, gold: str, answer: str, right: bool) -> None:
    assert verify(gold, answer, question=question, timeout_s=10.0).correct is right


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("A > B", "B < A", True),
        ("A > B", "A < B", False),
        ("A > B", r"B \le A", False),
        ("2^{30} < 3^{20}", "3^{20} > 2^{30}", True),
        ("2^{30} < 3^{20}", "0 < 1", False),
    ],
)
def test_a_comparison_may_be_read_from_both_sides(gold: str, answer: str, right: bool) -> None:
    assert verify(gold, answer, timeout_s=10.0).correct is right


def test_a_name_of_the_question_is_not_a_label_of_a_name() -> None:
    question = "Which capital is larger, London or Paris?"
    assert not verify("Paris", "London = Paris", question=question, timeout_s=10.0).correct
    assert verify("Paris", "capital: Paris", question=question, timeout_s=10.0).correct
    assert verify("5", "Tomas = 5", question="How old is Tomas?", timeout_s=10.0).correct
