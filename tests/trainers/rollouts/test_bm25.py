"""BM25 against numbers worked out by hand."""

import math

import pytest

from rstar2_env.trainers.rollouts.bm25 import ranked, scores

DOCUMENTS = ["a prime number", "the sum of two numbers", "two prime numbers and a prime sum"]


def test_the_scores_are_those_of_the_formula():
    # "prime": in 2 of 3 documents, once in one of 3 words and twice in one of 7; the mean length is 5.
    rare = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = rare * 1 * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 3 / 5))
    third = rare * 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 7 / 5))
    assert scores("Prime!", DOCUMENTS) == pytest.approx([first, 0.0, third])
    assert (first, third) == pytest.approx((0.573175, 0.594941), abs=1e-6)


def test_a_rare_word_counts_more_than_a_common_one():
    assert ranked("the two", DOCUMENTS)[0] == 1
    assert ranked("and number", DOCUMENTS) == [0, 2, 1]


def test_of_equal_matches_the_later_comes_first():
    assert ranked("nothing of this", ["x", "y", "z"]) == [2, 1, 0]
    assert ranked("x", []) == []
