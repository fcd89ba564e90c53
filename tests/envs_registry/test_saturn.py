"""rstar2/Saturn-v0: planted solutions hold, any satisfying assignment counts, difficulty and baselines as published."""

import gymnasium as gym
import numpy as np
import pytest

import rstar2_env  # noqa: F401  # registers the id
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.envs_registry.saturn import Saturn
from rstar2_env.worlds import UnreadableAnswerError
from rstar2_env.worlds.cnf import difficulty, satisfies, solutions, written

DIFFICULTIES = {
    (3, 5, 5): 5.632,
    (3, 5, 6): 6.159,
    (3, 5, 13): 8.389,
    (3, 5, 15): 8.802,
    (3, 5, 20): 9.632,
    (3, 5, 25): 10.276,
    (3, 6, 20): 10.229,
    (3, 7, 20): 10.785,
    (3, 7, 40): 12.785,
    (4, 7, 20): 9.201,
    (4, 7, 40): 11.201,
    (4, 8, 40): 11.644,
    (5, 8, 40): 10.244,
    (6, 7, 40): 8.618,
}
BASELINES = {(3, 5, 5): 0.51, (3, 5, 15): 0.13, (3, 5, 20): 0.077, (3, 7, 40): 0.0135, (6, 7, 40): 0.52}


def some(count, clause_size=3, variables=5, clauses=20):
    source = Saturn(clause_size, variables, clauses).source()
    return [source[index] for index in range(count)]


@pytest.mark.parametrize(("knobs", "expected"), DIFFICULTIES.items())
def test_the_difficulty_is_the_published_one(knobs, expected):
    assert round(difficulty(*knobs), 3) == expected
    assert some(1, *knobs)[0].meta["difficulty"] == expected


@pytest.mark.parametrize(("knobs", "expected"), BASELINES.items())
def test_a_random_assignment_satisfies_the_published_share(knobs, expected):
    shares = [len(list(solutions(p.meta["clauses"], knobs[1]))) / 2 ** knobs[1] for p in some(400, *knobs)]
    assert np.mean(shares) == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("knobs", [(3, 5, 5), (3, 5, 70), (3, 7, 245), (1, 2, 1), (2, 2, 3), (6, 7, 40), (8, 20, 50)])
def test_clauses_are_distinct_of_the_right_size_sorted_and_hold_for_the_planted_solution(knobs):
    size, variables, clauses = knobs
    for problem in some(20, *knobs):
        found = problem.meta["clauses"]
        assert len({frozenset(clause) for clause in found}) == len(found) == clauses
        assert all([abs(x) for x in clause] == sorted({abs(x) for x in clause}) for clause in found)
        assert all(len(clause) == size and max(map(abs, clause)) <= variables for clause in found)
        assert list(map(written, found)) == sorted(map(written, found))
        assert " & ".join(map(written, found)) in problem.question
        assert satisfies(found, [bit == "1" for bit in problem.answer])


def test_the_full_formula_has_the_planted_solution_alone():
    for problem in some(20, 3, 5, 70):
        assert list(solutions(problem.meta["clauses"], 5)) == [problem.answer]


def test_clauses_are_drawn_evenly():
    counts = {}
    for problem in some(400, 2, 3, 3):
        for clause in problem.meta["clauses"]:
            counts[tuple(clause)] = counts.get(tuple(clause), 0) + 1
    # 12 clauses of two of three variables; a solution at random admits 9 of them, each alike.
    assert len(counts) == 12
    assert min(counts.values()) > 60
    assert max(counts.values()) < 140


def test_any_satisfying_assignment_counts_and_no_other():
    env = gym.make("rstar2/Saturn-v0", clauses=5)
    env.reset(seed=3)
    family, problem = env.unwrapped.family, env.unwrapped.problem
    good = set(solutions(problem.meta["clauses"], 5))
    assert len(good) > 1
    for number in range(32):
        bits = format(number, "05b")
        assert family.solves(problem.meta, bits) == (bits in good)


@pytest.mark.parametrize(
    "form", ["{}{}{}{}{}", " {} {} {}\n{} {} ", "{},{},{}, {},{}", "\\text{{{}{}{}{}{}}}", "${}{}{}{}{}$"]
)
def test_spaces_and_commas_do_not_matter(form):
    (problem,) = some(1)
    assert Saturn().solves(problem.meta, form.format(*problem.answer))


@pytest.mark.parametrize("answer", ["", "1", "111111", "1111x", "A=1", "1111２", "TTFFT", "-1111"])
def test_anything_but_five_bits_is_unreadable(answer):
    with pytest.raises(UnreadableAnswerError):
        Saturn().solves(some(1)[0].meta, answer)


def test_more_clauses_than_there_are_are_refused():
    with pytest.raises(ConfigurationError, match="clauses must be an integer from 1 to 70"):
        Saturn(clauses=71)
    with pytest.raises(ConfigurationError, match="clause_size must be an integer from 1 to 5"):
        Saturn(clause_size=6)
    with pytest.raises(ConfigurationError):
        difficulty(3, 0, 5)
