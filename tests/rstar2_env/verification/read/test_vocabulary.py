"""Words next to a number are known, or the answer is refused."""

from __future__ import annotations

import pytest

from rstar2_env.verification import Reason, verify
from rstar2_env.verification.read.vocabulary import known_words, names_things, same_things, unknown_in_label

NOTHING: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("apples", True),
        ("blue marbles", True),
        ("dollars per day", True),
        ("more", True),
        ("pieces of gum", True),
        ("grams of NaCl", True),
        ("páginas por día", True),
        ("个苹果", True),
        ("倍", False),
        ("个鸡蛋", True),
        ("分钟", True),
        ("个余", False),
        ("個強", False),
        ("人未満", False),
        ("千克", True),
        ("lakh", False),
        ("dozen apples", False),
        ("million", False),
        ("twice", False),
        ("or 8", False),
        ("not", False),
        ("wombats", False),
        ("", False),
    ],
)
def test_a_remark_has_known_words_only(text: str, known: bool) -> None:
    assert names_things(text) is known


def test_the_words_of_the_gold_and_the_question_are_known_if_they_change_no_number() -> None:
    assert names_things("wombats", known_words("7 wombats", None))
    assert names_things("wombats", known_words("7", "Ann has 3 wombats and buys 4. How many has she?"))
    assert names_things("red wombats", known_words("7", "How many red wombats are there?"))
    assert names_things("wombats", known_words("7", "The zoo likes wombats. What is twice 3.5?"))
    assert not names_things("twice", known_words("7", "The zoo likes wombats. What is twice 3.5?"))
    assert not names_things("not", known_words("7 not 8", None))


def test_names_of_things_agree_up_to_plurals_and_detail() -> None:
    assert same_things("apples", "apple", NOTHING)
    assert same_things("red tiles", "tiles", NOTHING)
    assert not same_things("apples", "oranges", NOTHING)
    assert not same_things("$", "marbles", NOTHING)


def test_a_label_has_known_words_only() -> None:
    assert unknown_in_label("The area", NOTHING, None) is None
    assert unknown_in_label("The wombats", NOTHING, None) == "wombats"
    assert unknown_in_label("The wombats", NOTHING, "How old are the wombats?") is None
    verdict = verify("7", "the zorp is 7", timeout_s=10.0)
    assert (verdict.reason, verdict.method) == (Reason.UNPARSABLE_ANSWER, "unknown word zorp")
