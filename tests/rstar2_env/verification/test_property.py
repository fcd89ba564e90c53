"""Equal expressions are equal however they are written, different ones never are, and no text breaks anything."""

from __future__ import annotations

from random import Random

import pytest
from answer_samples import differ, latex, mutate, random_term, rewrite
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.compare.grade import grade
from rstar2_env.verification.guards import too_large
from rstar2_env.verification.values.ball import TooLargeError
from rstar2_env.verification.verdict import Reason

PIECES = st.sampled_from(
    [
        r"\frac",
        r"\sqrt",
        r"{",
        r"}",
        r"(",
        r")",
        r"[",
        r"]",
        r"\{",
        r"\}",
        r"^",
        r"_",
        r"+",
        r"-",
        r"*",
        r"/",
        r"=",
        r"<",
        r">",
        r"\le",
        r"\ne",
        r"\in",
        r"\cup",
        r",",
        r";",
        r":",
        r"|",
        r"\mid",
        r"\pm",
        r"\infty",
        r"\pi",
        r"e",
        r"i",
        r"x",
        r"y",
        r"n",
        r"1",
        r"2",
        r"10",
        r"0.5",
        r".5",
        r"%",
        r"\%",
        r"$",
        r"\$",
        r"\text{",
        r"\text{and}",
        r"\mathrm{",
        r"cm",
        r"m",
        r"!",
        r"'",
        r"^\circ",
        r"\sum_{k=1}^{n}",
        r"\int_0^1",
        r"\lim_{x\to0}",
        r"dx",
        r"\begin{pmatrix}",
        r"\end{pmatrix}",
        r"&",
        r"\\",
        r"\binom{",
        r"\log",
        r"\ln",
        r"\sin",
        r"\cos^{-1}",
        r"\boxed{",
        r"\left",
        r"\right",
        r"...",
        r"\cdots",
        r"and",
        r"or",
        r"yes",
        r"no",
        r"A",
        r"B",
        r"\vec",
        r"\overline",
        r"\mathbb{R}",
        r"√",
        r"²",
        r"½",
        r"−",
        r"°",
        r"∞",
        r"€",
        r"\sqrt[3]",
        r"\bmod",
        r"\lfloor",
        r"\rfloor",
        r"ﬁ",
        r"𝟕",
        r"\ud800",
    ]
)
TEXTS = st.lists(PIECES, max_size=14).flatmap(lambda parts: st.sampled_from(["".join(parts), " ".join(parts)]))


@settings(max_examples=300, deadline=None)
@given(st.integers(min_value=0))
def test_an_equivalent_rewriting_is_equal(seed: int) -> None:
    chance = Random(seed)
    term = random_term(chance, 3, (("x", "y"), ("x",), ())[seed % 3])
    other = rewrite(chance, term, chance.randint(1, 6))
    if differ(term, other, chance) is False:
        one, two = latex(chance, term), latex(chance, other)
        assert grade(one, two, Rules(undone="any"))[0] is Reason.EQUAL, (one, two)


@settings(max_examples=300, deadline=None)
@given(st.integers(min_value=0))
def test_a_different_expression_is_different(seed: int) -> None:
    chance = Random(seed)
    term = random_term(chance, 3, (("x", "y"), ("x",), ())[seed % 3])
    other = mutate(chance, rewrite(chance, term)) if seed % 2 else random_term(chance, 3)
    if differ(term, other, chance):
        one, two = latex(chance, term), latex(chance, other)
        assert grade(one, two, Rules())[0] is not Reason.EQUAL, (one, two)


@settings(max_examples=500, deadline=None)
@given(TEXTS, TEXTS)
def test_no_text_raises(gold: str, answer: str) -> None:
    if too_large(gold) or too_large(answer):
        return
    try:
        reason, method = grade(gold, answer, Rules())
    except TooLargeError:
        return
    assert isinstance(reason, Reason)
    assert method


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_no_unicode_raises(text: str) -> None:
    if too_large(text):
        return
    try:
        grade("x+1", text, Rules())
        grade(text, "x+1", Rules())
    except TooLargeError:
        return


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_a_text_equals_itself_when_spaced_otherwise(text: str) -> None:
    if too_large(text) or not any(char.isalnum() for char in text):
        return
    assert grade(text, f" {text} ", Rules())[0] is Reason.EQUAL


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [1000, pytest.param(10_000, marks=pytest.mark.proof)])
def test_random_pairs_have_no_false_positive(pairs: int) -> None:
    chance = Random(7)
    wrong: list[tuple[str, str]] = []
    for number in range(pairs):
        term = random_term(chance, 3, (("x", "y"), ("x",), ())[number % 3])
        other = mutate(chance, rewrite(chance, term)) if number % 2 else random_term(chance, 3)
        if differ(term, other, chance):
            one, two = latex(chance, term), latex(chance, other)
            if grade(one, two, Rules())[0] is Reason.EQUAL:
                wrong.append((one, two))
    assert wrong == []
