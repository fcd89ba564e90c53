"""The probes that other packages publish for graders, on ours: falsepass 0.11 and bohrin 0.4.

falsepass's probes are texts for a question and its answer; all must earn nothing here. bohrin's battery changes
programs, and no environment here grades a program, so that it proposes nothing to grade.
"""

from __future__ import annotations

import pytest
from bohrin.ir.task import Shape, Task
from bohrin.mutate.battery import battery
from falsepass.probes import answer_free_sprays, hedged_in_slot, special_number_answers

from rstar2_env import Problem, verify
from rstar2_env.wrappers.make import make_env

PAIRS = (("12", "13"), ("-3", "3"), ("0.5", "5"), ("\\frac{3}{4}", "\\frac{4}{3}"), ("x+1", "x-1"), ("Paris", "London"))
QUESTION = "How many of the 12 or 13 eggs are left, and in which of Paris and London?"


def probes(gold, wrong):
    """Return the texts of falsepass that must earn nothing, by name."""
    numbers = {name: text for name, (text, _) in special_number_answers(gold).items()}
    return {**hedged_in_slot(gold, wrong), **numbers, **answer_free_sprays(QUESTION)}


@pytest.mark.parametrize(("gold", "wrong"), PAIRS)
def test_no_probe_of_falsepass_is_right(gold, wrong):
    assert [name for name, text in probes(gold, wrong).items() if verify(gold, text).correct] == []


@pytest.mark.parametrize(("gold", "wrong"), PAIRS)
def test_no_probe_of_falsepass_earns_a_reward_in_an_environment(gold, wrong):
    env = make_env("rstar2/MathTool-v0")
    paid = []
    for name, text in {**probes(gold, wrong), "gold": gold}.items():
        env.reset(seed=0, options={"problem": Problem("probe", QUESTION, gold)})
        if env.step(env.unwrapped.dialect.format_answer(text))[1] > 0:
            paid.append(name)
    env.close()
    assert paid == ["gold"]


def test_bohrin_proposes_nothing_for_a_task_whose_answer_is_no_program():
    for gold, _ in PAIRS:
        assert battery(Task("t", QUESTION, gold)).grounded == ()


def test_bohrin_proposes_changes_of_a_program():
    task = Task("t", "Write add.", "def add(a, b):\n    return a + b\n", shape=Shape.PROGRAM)
    assert len(battery(task).grounded) >= 3
