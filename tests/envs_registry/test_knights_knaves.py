"""rstar2/KnightsKnaves-v0: exactly one solution, found independently here, and answers in the documented forms."""

from itertools import product

import numpy as np
import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.envs_registry.knights_knaves import KnightsKnaves
from rstar2_env.worlds import UnreadableAnswerError
from rstar2_env.worlds.knights import random_statement, signature, solutions, words

META = {"names": ["Ann", "Ben"], "statements": [["and", ["knave", 0], ["knave", 1]], ["knight", 0]]}
"""Ann says that both are knaves: she lies, so Ben does not; but Ben says that Ann is a knight."""
CLASSIC = {"names": ["Ann", "Ben"], "statements": [["and", ["knave", 0], ["knave", 1]], ["knave", 0]]}
RIGHT = "Ann: knave, Ben: knight"


def true_in(world, statement):
    """The meaning of statements once more, in the plainest way."""
    kind, *parts = statement
    if kind in ("knight", "knave"):
        return world[parts[0]] == (kind == "knight")
    values = [true_in(world, part) for part in parts]
    return {
        "not": lambda: not values[0],
        "and": lambda: values[0] and values[1],
        "or": lambda: values[0] or values[1],
        "if": lambda: not values[0] or values[1],
        "same": lambda: values[0] == values[1],
    }[kind]()


@pytest.mark.parametrize(("people", "depth"), [(2, 2), (3, 2), (4, 3), (6, 2), (8, 4)])
def test_there_is_exactly_one_solution_and_it_is_the_answer(people, depth):
    family = KnightsKnaves(people, depth)
    source = family.source()
    for index in range(15):
        problem = source[index]
        names, statements = problem.meta["names"], problem.meta["statements"]
        fitting = [
            world
            for world in product([False, True], repeat=people)
            if all(true_in(world, said) == world[speaker] for speaker, said in enumerate(statements))
        ]
        assert [list(world) for world in fitting] == solutions(statements)
        (world,) = fitting
        kinds = [f"{name}: {'knight' if knight else 'knave'}" for name, knight in zip(names, world, strict=True)]
        assert problem.answer == ", ".join(kinds)
        assert len(set(names)) == people
        assert all(f"{name} says:" in problem.question for name in names)


def test_simple_statements_say_nothing_of_the_speaker():
    rng = np.random.default_rng(0)
    for speaker in range(3):
        said = [random_statement(speaker, 3, 1, rng) for _ in range(200)]
        assert {about for _, about in said} == {0, 1, 2} - {speaker}
        assert {kind for kind, _ in said} == {"knight", "knave"}


@pytest.mark.parametrize(
    "answer",
    [
        RIGHT,
        "Ben: knight, Ann: knave",
        "Ann is a knave and Ben is a knight.",
        "ANN = KNAVE; ben = Knight",
        "1. Ann is a knave\n2. Ben is a knight",
        "(1) Ann -> knave (2) Ben -> knight",
        "\\text{Ann is a knave, and Ben is a knight}",
        "Ann knave Ben knight",
    ],
)
def test_the_documented_forms_count(answer):
    assert KnightsKnaves().solves(CLASSIC, answer)


@pytest.mark.parametrize("answer", ["Ann: knight, Ben: knight", "Ann: knave, Ben: knave", "Ann: knight, Ben: knave"])
def test_another_solution_does_not(answer):
    assert not KnightsKnaves().solves(CLASSIC, answer)


@pytest.mark.parametrize(
    "answer",
    [
        *("", "knave, knight", "Ann: knave", "Ann: knave, Ben: knight, Ann: knave", "Ann: knave, Ann: knight"),
        *("Ann: knave, Ben: knight, Cal: knave", "Ann is not a knight, Ben is a knight", "Ann: knave, Ben: spy"),
        *("Ann: knave, Ben: knight or knave", "knave: Ann, knight: Ben", "Ann and Ben: knave", f"({RIGHT})+1", "10"),
    ],
)
def test_anything_else_is_unreadable(answer):
    with pytest.raises(UnreadableAnswerError):
        KnightsKnaves().solves(CLASSIC, answer)


def test_a_paradox_has_no_solution():
    assert solutions(META["statements"]) == []
    assert solutions([["knave", 0]]) == []
    assert solutions([["knight", 0]]) == [[False], [True]]


def test_statements_read_as_english():
    nested = ["if", ["not", ["knight", 0]], ["same", ["knave", 1], ["knight", 1]]]
    expected = "if (it is not the case that A is a knight) then (B is a knave if and only if B is a knight)"
    assert words(nested, ["A", "B"]) == expected


def test_puzzles_that_differ_in_who_is_who_have_one_signature():
    rng = np.random.default_rng(1)
    different = set()
    for _ in range(50):
        said = [random_statement(speaker, 4, 3, rng) for speaker in range(4)]
        order = rng.permutation(4).tolist()
        moved = [None] * 4
        for speaker, statement in enumerate(said):
            moved[order[speaker]] = renamed(statement, order)
        assert signature(moved) == signature(said)
        different.add(signature(said))
    assert len(different) == 50


def renamed(statement, order):
    if isinstance(statement[1], int):
        return [statement[0], order[statement[1]]]
    parts = [renamed(part, order) for part in statement[1:]]
    return [statement[0], *(reversed(parts) if statement[0] in ("and", "or", "same") else parts)]


def test_simple_statements_alone_are_refused_since_they_never_have_one_solution():
    with pytest.raises(ConfigurationError, match="depth must be an integer from 2 to 4, not 1"):
        KnightsKnaves(depth=1)
