"""Claims about leaving out what benchmarks hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import SHARED

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import Problem, load_problems
from rstar2_env.problems.decontaminate import Benchmarks, Decontaminated, normal_words

SHARED = SHARED / "data"
NINE = "Find the least positive integer n such that n^2 ends"
BENCH = {"bench": [Problem("b", f"{NINE} in 44.", "38"), Problem("short", "What is $1+1$?", "2")]}


def decontaminate(problems, against, ngram=8):
    benchmarks, found, kept = Benchmarks(against, ngram=ngram), Decontaminated(), []
    for problem in problems:
        overlap = benchmarks.overlap(problem)
        (kept if overlap is None else found.dropped).append(problem if overlap is None else overlap)
    found.kept = len(kept)
    return kept, found


def drop(question: str, **options):
    return decontaminate([Problem("a", question, "1")], BENCH, **options)[1].dropped


def test_a_run_of_eight_words_in_common_is_enough_and_is_told():
    (overlap,) = drop("Ann says: find THE least positive integer $n$, such that you win.")
    assert (overlap.benchmark, overlap.benchmark_id) == ("bench", "b")
    assert overlap.words == "find the least positive integer n such that"
    (overlap,) = drop("Is there some n such that n^2 ends in 44?")
    assert overlap.words == "n such that n 2 ends in 44", "the last of both"


def test_seven_words_are_not():
    assert drop("Find the least positive integer n such as 7.") == []


@pytest.mark.parametrize("question", ["what is \\(1 + 1\\)", "What is 1+1 ?"])
def test_a_shorter_question_is_compared_whole(question):
    assert drop(question)[0].benchmark_id == "short"
    assert drop(f"{question} And 2?") == []


def test_the_length_of_a_run_is_an_option():
    assert drop("The least positive number.", ngram=3)
    with pytest.raises(ConfigurationError, match="at least 1"):
        drop("x", ngram=0)


def test_there_must_be_a_benchmark():
    with pytest.raises(ConfigurationError, match="at least one benchmark"):
        decontaminate([], {})


def test_kept_and_dropped_add_up_and_are_counted_by_benchmark():
    problems = [Problem(str(n), NINE if n % 2 else f"other {n}", "1") for n in range(6)]
    kept, found = decontaminate(problems, BENCH)
    assert [problem.id for problem in kept] == ["0", "2", "4"]
    assert (found.kept, found.by_benchmark()) == (3, {"bench": 3})


@given(st.text())
def test_a_question_overlaps_itself_if_it_has_a_word(question):
    kept, _ = decontaminate([Problem("a", question, "1")], {"itself": [Problem("b", question, "1")]})
    assert bool(kept) == (not normal_words(question))


def test_a_benchmark_planted_in_a_training_set_is_found_whole():
    files = [SHARED / f"{name}.jsonl" for name in ("gsm8k_test", "aime24")]
    if not all(file.exists() for file in files):
        pytest.skip("gsm8k_test.jsonl and aime24.jsonl are not beside the repository, under shared/data")
    train, bench = (list(load_problems(file)) for file in files)
    kept, found = decontaminate([*train, *bench], {"aime24": bench})
    assert {problem.id for problem in bench} <= {overlap.problem_id for overlap in found.dropped}
    assert len(kept) >= len(train) - 3
