"""Claims about the golds of an audit: their other spellings are right, and their wrong answers are wrong."""

from __future__ import annotations

import pytest

from rstar2_env.evaluation.audit.golds import CLASSES, differ, golds_of, hedges, respelled, wrong_answers
from rstar2_env.evaluation.audit.wrongs import WRONG, number_of
from rstar2_env.verification import verify

NUMERIC = ("integers", "decimals", "fractions")


def test_every_class_has_wrong_answers_for_every_gold():
    assert CLASSES.keys() == WRONG.keys()
    for name in CLASSES:
        golds = golds_of(name, seed=0)
        assert {gold for _, gold, _ in wrong_answers(name, golds, 0)} == set(golds)


@pytest.mark.parametrize("name", NUMERIC)
def test_wrong_numbers_have_another_value(name):
    for cause, gold, answer in wrong_answers(name, golds_of(name, seed=0), 0):
        if (value := number_of(answer)) is not None:
            assert value != number_of(gold), (cause, gold, answer)


def test_a_wrong_answer_is_never_the_gold_in_another_dress():
    for name in CLASSES:
        for cause, gold, answer in wrong_answers(name, golds_of(name, seed=3), 3):
            assert answer.strip().casefold() != gold.strip().casefold(), (cause, gold)


def test_the_verifier_of_this_package_reads_other_spellings_of_numbers_as_right():
    for name in NUMERIC:
        for gold in golds_of(name, seed=0)[:12]:
            for cause, answer in respelled(name, gold):
                assert verify(gold, answer).correct, (cause, gold, answer)


def test_numbers_that_differ_by_a_thousandth_may_be_equal():
    assert not differ("1000", "1000.5")
    assert differ("1000", "1002")
    assert differ("7", "-7")
    assert not differ("Zürich", "zurich")
    assert not differ("yes", " Yes. ")


def test_decisions_differ_by_what_they_say():
    assert not differ("yes", "True")
    assert not differ("No", "false.")
    assert differ("yes", "no")
    assert differ("True", "no")
    assert differ("yes", "Paris")


def test_sentences_begin_differently_and_each_has_one_that_differs_near_its_end():
    golds = CLASSES["sentences"]
    for gold in golds:
        assert any(other[:20] != gold[:20] for other in golds)
        assert [other[:150] for other in golds].count(gold[:150]) == 2
        assert dict(WRONG["sentences"](gold))["the negation"] != gold


def test_a_text_with_two_answers_names_both():
    for _, text in hedges("12", "34"):
        assert "12" in text
        assert "34" in text


def test_another_seed_draws_other_numbers():
    assert golds_of("integers", 0) != golds_of("integers", 1)
    assert len(set(golds_of("integers", 0))) == len(golds_of("integers", 0))
