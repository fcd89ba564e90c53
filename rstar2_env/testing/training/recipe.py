"""``check_recipe``: checks that the parts of a recipe exist, and that its options can be saved and read as JSON."""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rstar2_env.testing.harness import require
from rstar2_env.testing.runner import by_name, run_checks

_MODEL = {"model": "some/model"}


@dataclass(frozen=True, slots=True)
class RecipeHarness:
    """One recipe under test.

    Attributes:
        recipe: The ``Recipe`` object.
        name: The name under which the recipe is registered, or ``recipe.name`` if it is not registered.
    """

    recipe: Any
    name: str

    def config(self, **options: Any) -> Any:
        """Return the options of a run with this recipe; the caller's options override the recipe's."""
        return self.recipe.configure({**_MODEL, **options})


def description(harness: RecipeHarness) -> None:
    """Check that the recipe has the name under which it is registered, and a summary of one line."""
    recipe = harness.recipe
    require(recipe.name == harness.name, f"it is registered as {harness.name!r}, but its name is {recipe.name!r}")
    whole = len(recipe.summary) > 10 and "\n" not in recipe.summary
    require(whole, f"its summary is {recipe.summary!r:.80}; describe it in one line, for `rstar2 list trainers`")


def resolves(harness: RecipeHarness) -> None:
    """Check that every part that the recipe names exists, and that the recipe's options are valid together."""
    harness.config()


def trains(harness: RecipeHarness) -> None:
    """Check that at least one loss term trains the policy: a policy gradient, or a term whose ``coef`` is not 0."""
    parts = importlib.import_module("rstar2_env.trainers.options.parts")
    terms = parts.make_parts(harness.config(), shares_weights=True).terms
    learns = any(term.policy_gradient or getattr(term, "coef", 1.0) for term in terms)
    require(
        learns,
        f"no term of its loss depends on the policy: {', '.join(type(term).__name__ for term in terms) or 'none'}",
    )


def the_users_options_win(harness: RecipeHarness) -> None:
    """Check that the user's options override the recipe's, and that an option does not change other options."""
    plain, changed = harness.config().record(), harness.config(steps=7, temperature=0.5).record()
    require(changed["run"]["steps"] == 7, "the run does not use steps=7")
    require(changed["rollout"]["temperature"] == 0.5, "the run does not use temperature=0.5")
    changed["run"]["steps"] = plain["run"]["steps"]
    changed["rollout"]["temperature"] = plain["rollout"]["temperature"]
    require(_text(changed) == _text(plain), "steps and temperature change other options too")


def record(harness: RecipeHarness) -> None:
    """Check that the recipe's options are the same after they are written as JSON and read again."""
    written = _text(harness.config().record())
    again = _text(harness.recipe.configure(json.loads(written)).record())
    require(again == written, "its options differ after they were written as JSON and read again")


RECIPE_CHECKS = by_name(description, resolves, trains, the_users_options_win, record)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_recipe(recipe: Any, *, skip: Collection[str] = ()) -> list[str]:
    """Check a recipe against its contract (docs/part-interfaces.md). Needs no pytest, no torch and no model.

    The parts that the recipe names have separate checks.

    Args:
        recipe: A name as ``rstar2 train`` takes it, or a ``Recipe``.
        skip: Names of checks to leave out; see ``rstar2_env.testing.RECIPE_CHECKS``.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The recipe breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no recipe with this name, or ``skip`` contains a name that is not a check.
    """
    base = importlib.import_module("rstar2_env.trainers.base")
    found = base.TRAINERS.get(recipe) if isinstance(recipe, str) else recipe
    name = recipe if isinstance(recipe, str) and recipe in base.TRAINERS.names() else found.name
    return run_checks(f"The recipe {name}", RECIPE_CHECKS, RecipeHarness(found, name), skip=skip)


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True)
