"""The loss of every recipe: the TRL backend's optimizer steps equal those of the reference backend.

Each loss that a recipe of the registry has is computed in micro-batches on one process, and on two of which one has
fewer rows, with adapters, recomputation and a temperature in turn; the reference computes the same rows one at a time,
in float64. Which formula is right is not asked here, but in the tests of each part.
"""

from __future__ import annotations

import pytest
from oracle_cases import run_cases

from rstar2_env.trainers import TRAINERS

pytestmark = pytest.mark.train

TOLERANCE = 1e-5
"""Of the loss relative to itself (to 1, if it is smaller), of a gradient relative to its tensor's largest."""
LEFT_OUT: dict[str, str] = {}
"""Recipes whose loss needs what plain rows do not have, and what that is."""


def losses():
    """One recipe for each different loss, and the recipes that have it."""
    found: dict[str, list[str]] = {}
    for name in TRAINERS:
        if name not in LEFT_OUT:
            parts = TRAINERS.get(name).configure({"model": "m"}, {"max_episode_tokens": 16}).parts
            found.setdefault(" ".join(map(str, [*parts.loss, parts.aggregation, parts.correction])), []).append(name)
    return list(found.values())


SAME = losses()
WAYS = {
    1: {"processes": "1-some", "micro_batches": 4, "minibatches": 1},
    2: {"processes": "2-some", "micro_batches": 2, "minibatches": 1},
}
CASES = {
    (names[0], processes): {
        "recipe": names[0],
        **way,
        "lora": (number + processes) % 3 == 0,
        "checkpointing": (number + processes) % 2 == 0,
        "temperature": (1.0, 0.7)[number % 2],
        "learning_rate": 1e-2,
    }
    for number, names in enumerate(SAME)
    for processes, way in WAYS.items()
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What was found in each case."""
    results = {}
    for processes in WAYS:
        cases = {key: case for key, case in CASES.items() if key[1] == processes}
        told = run_cases(list(cases.values()), processes, tmp_path_factory.mktemp(f"processes{processes}"))
        results |= dict(zip(cases, told, strict=True))
    return results


@pytest.mark.parametrize(("recipe", "processes"), CASES)
def test_the_backend_computes_the_loss_of_the_recipe(recipe, processes, found):
    steps = found[recipe, processes]["steps"]
    assert len(steps) == 2
    for step in steps:
        assert step["loss"] < TOLERANCE
        assert {name: apart for name, apart in step["gradients"].items() if not apart < TOLERANCE} == {}
        assert step["tensors"] > 0, "a loss without a gradient shows nothing"


def test_every_recipe_is_here_or_left_out_for_a_reason():
    assert sorted([*(name for names in SAME for name in names), *LEFT_OUT]) == list(TRAINERS)
