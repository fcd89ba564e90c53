"""Claims about the figures of ``rstar2 problems stats``."""

from __future__ import annotations

import pytest

from rstar2_env.problems import Problem
from rstar2_env.problems.stats import answer_kind, problem_stats


def test_the_figures_count_what_is_there():
    figures = problem_stats(
        [
            Problem("a", "one  two", "1", "s", {"level": 1}),
            Problem("b", "one two", "2.5", "s"),
            Problem("c", "xyz", "x+1", "t", {"level": 2}),
            Problem("d", "abcdefgh", "Infinity"),
            Problem("e", "xyz", "x + 1"),
        ]
    )
    assert figures["problems"] == 5
    assert figures["questions_that_repeat"] == 2
    assert figures["answers_that_contradict"] == 1
    assert figures["question_characters"] == {"least": 3, "median": 7, "p95": 8, "most": 8}
    assert figures["answers"] == {"mathematics": 2, "whole number": 1, "decimal number": 1, "text": 1}
    assert figures["sources"] == {"s": 2, "none": 2, "t": 1}
    assert figures["fields"] == {"level": 2}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("7", "whole number"),
        ("-1,234", "whole number"),
        ("$12$", "whole number"),
        ("27.0", "decimal number"),
        ("1e3", "decimal number"),
        ("1/2", "fraction"),
        ("\\frac{1}{2}", "fraction"),
        ("(B)", "choice"),
        ("\\sqrt{2}", "mathematics"),
        ("1,2", "mathematics"),
        ("east", "text"),
    ],
)
def test_answers_are_told_apart_by_their_looks(answer, kind):
    assert answer_kind(answer) == kind
