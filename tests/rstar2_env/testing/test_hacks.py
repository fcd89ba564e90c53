"""Hacks made anew by cause: the default verifier pays none of them, and a loose one shows that they are real."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env import make_env
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.hacks import CAUSES, attack, attack_env, dressed, echoes, hacks
from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.options import VerifyOptions
from rstar2_env.verification.verdict import Reason, Verdict
from rstar2_env.verification.verifier import RuleVerifier

PATIENT = RuleVerifier(VerifyOptions(timeout_s=20.0))


@pytest.mark.parametrize("cause", CAUSES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_no_new_hack_of_a_known_cause_is_paid(cause: str, seed: int) -> None:
    hack = CAUSES[cause](Random(seed))
    assert not PATIENT(hack.gold, hack.answer, hack.question).correct, hack


@pytest.mark.parametrize("cause", CAUSES)
def test_a_gold_of_each_cause_is_itself_right(cause: str) -> None:
    for hack in hacks([cause], count=20):
        assert PATIENT(hack.gold, f" {hack.gold} ", hack.question).correct, hack


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_simplified_answer_is_right_though_the_question_states_its_value(seed: int) -> None:
    chance = Random(seed)
    a, b, c = (chance.randint(2, 9) for _ in range(3))
    question = f"Simplify: ${a}+{b}(n-{c})$"
    assert PATIENT(f"{b}n{a - b * c:+d}", f"{a - b * c}+{b}n", question).correct


def test_a_loose_verifier_pays_what_the_default_does_not() -> None:
    loose = RuleVerifier(VerifyOptions(undone="any", strict=False, timeout_s=20.0), guard_echo=False)
    tallies = attack(loose, hacks(["echo", "uncomputed", "unsolved"], count=40))
    assert all(tally.paid > tally.tried // 2 for tally in tallies.values()), tallies
    assert all(tally.examples for tally in tallies.values())


def test_the_same_seed_gives_the_same_hacks() -> None:
    assert list(hacks(count=3, seed=5)) == list(hacks(count=3, seed=5)) != list(hacks(count=3, seed=6))
    with pytest.raises(ConfigurationError, match="cause 'magic'"):
        next(hacks(["magic"]))


def test_a_formula_of_the_question_that_is_the_gold_is_no_echo() -> None:
    answers = [hack.answer for hack in echoes("Is it $P_{1}$ or $P_{2}$?", "$P_{1}$")]
    assert answers == list(dressed("P_{2}"))


def test_a_name_as_the_gold_needs_no_operations() -> None:
    graded = {answer: PATIENT("$P_{1}$", answer, "Is it $P_{1}$ or $P_{2}$?").correct for answer in dressed("P_{1}")}
    spelled = {"P_{1}", "(P_{1})", "y=(P_{1})", r"\left\{P_{1}\right\}", r"\text{Answer: }(P_{1})", r"\mathbf{ P_{1} }"}
    assert {answer for answer, correct in graded.items() if correct} == spelled


def test_echoes_hold_every_formula_of_a_question_and_both_sides_of_an_equation() -> None:
    answers = {hack.answer for hack in echoes(r"Given $y=2x$, simplify \(3(x+1)\).", "3x+3")}
    assert {"(3(x+1))", "y=2x", "(2x)"} <= answers
    assert len(answers) >= 4 * len(set(dressed("x+1")))


def test_an_environment_that_pays_everything_is_found_out() -> None:
    env = make_env("rstar2/MathTool-v0", problems="arithmetic", verifier="rules")
    with env:
        tallies = attack_env(env, problems=3, count=2)
        assert {name: tally.paid for name, tally in tallies.items() if tally.paid} == {}
        env.unwrapped.grader = lambda problem, answer: Verdict(True, Reason.EQUAL, "always")
        paid = attack_env(env, problems=1, count=1)
    assert all(tally.paid == tally.tried for tally in paid.values())
    assert set(paid) == set(CAUSES)


def test_the_rules_that_refuse_are_options() -> None:
    assert Rules().undone == "none"
    for undone, right in (("none", False), ("arithmetic", True), ("any", True)):
        assert RuleVerifier(VerifyOptions(undone=undone, timeout_s=20.0))("171", "46+30+95").correct is right
