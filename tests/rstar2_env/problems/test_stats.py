"""Claims about the figures of ``rstar2 problems stats``."""

from __future__ import annotations

from rstar2_env.problems import Problem
from rstar2_env.problems.stats import problem_stats


def test_the_figures_count_what_is_there():
    figures = problem_stats(
        [
            Problem("a", "one  two", "1", "s", {"level": 1}),
            Problem("b", "one two", "2.5", "s"),
            Problem("c", "xyz", "x+1", "t", {"level": 2}),
            Problem("d", "abcdefgh", "Infinity"),
        ]
    )
    assert figures["problems"] == 4
    assert figures["questions_that_repeat"] == 1
    assert figures["question_characters"] == {"least": 3, "median": 7.5, "most": 8}
    assert figures["answers"] == {"text": 2, "whole number": 1, "decimal number": 1}
    assert figures["sources"] == {"s": 2, "t": 1, "none": 1}
    assert figures["fields"] == {"level": 2}
