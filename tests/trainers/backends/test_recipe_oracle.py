"""The loss of every recipe: the TRL backend's optimizer steps equal those of the reference backend.

Each loss that a recipe of the registry has is computed in micro-batches, with adapters, recomputation and a temperature
in turn, beside a row without an advantage and one without a token of the policy's; the reference computes the same rows
one at a time, in float64. Which formula is right is not asked here, but in the tests of each part, and several
processes are those of ``test_oracle`` and ``test_term_oracle``. These run in CI with every term and its pairs, of which
the losses of recipes are combinations.
"""

from __future__ import annotations

import pytest
from oracle_cases import Running

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
CASES = {
    names[0]: {
        "recipe": names[0],
        "processes": "1-some",
        "micro_batches": 4,
        "minibatches": 1,
        "lora": number % 3 == 0,
        "checkpointing": number % 2 == 0,
        "prefixes": number % 5 > 2,
        "temperature": (1.0, 0.7)[number % 2],
        "learning_rate": 1e-2,
    }
    for number, names in enumerate(SAME)
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What is found in each case."""
    with Running(CASES, tmp_path_factory.mktemp("cases")) as running:
        yield running


@pytest.mark.proof
def test_the_backend_computes_the_loss_of_every_recipe(found, record_property):
    wrong = {}
    for recipe in CASES:
        steps = found[recipe]["steps"]
        apart = [name for step in steps for name, distance in step["gradients"].items() if not distance < TOLERANCE]
        if len(steps) != 2 or apart or not all(step["loss"] < TOLERANCE and step["tensors"] > 0 for step in steps):
            wrong[recipe] = (len(steps), apart, [(step["loss"], step["tensors"]) for step in steps])
    record_property("losses", len(CASES))
    assert wrong == {}


def test_every_recipe_is_here_or_left_out_for_a_reason():
    assert sorted([*(name for names in SAME for name in names), *LEFT_OUT]) == list(TRAINERS)
