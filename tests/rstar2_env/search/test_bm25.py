"""BM25 against numbers worked out by hand."""

import math

import pytest

from rstar2_env.search.bm25 import WORDS_AND_SIGNS, Bm25

TEXTS = ["a prime number", "the sum of two numbers", "two prime numbers and a prime sum"]


def test_the_scores_are_those_of_the_formula():
    # "prime": in 2 of 3 texts, once in one of 3 words and twice in one of 7; the mean length is 5.
    rare = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = rare * 1 * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 3 / 5))
    third = rare * 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 7 / 5))
    assert Bm25(TEXTS).scores("Prime!") == pytest.approx([first, 0.0, third])
    assert (first, third) == pytest.approx((0.573175, 0.594941), abs=1e-6)


def test_rare_words_count_more_than_common_ones():
    assert Bm25(TEXTS).nearest("the two", 1) == [1]
    assert Bm25(TEXTS).nearest("and number", 3) == [0, 2]
    index = Bm25(["the red door", "the green door", "the door the door", "a window"])
    assert index.nearest("the green", 2) == [1, 2]
    assert Bm25(["one two", "one two", "two one", "three"]).nearest("one two three", 1) == [3]


def test_what_shares_no_word_is_not_near_and_of_equal_texts_the_earlier_comes_first():
    assert Bm25(["x", "y", "x"]).nearest("X", 5) == [0, 2]
    assert Bm25(["x", "y"]).nearest("nothing of this", 2) == []
    assert Bm25([]).nearest("x", 1) == []
    assert Bm25(["", ""]).scores("x") == [0, 0]


def test_signs_count_as_words_where_the_pattern_says_so():
    texts = ["3 + 4", "3 * 4"]
    assert Bm25(texts).nearest("*", 2) == []
    assert Bm25(texts, words=WORDS_AND_SIGNS).nearest("*", 2) == [1]
