"""check_recipe passes a sound recipe and names the one clause that a broken one breaks."""

from dataclasses import replace

import pytest
from mutants import broken

from rstar2_env.core.errors import UnknownNameError
from rstar2_env.testing import RECIPE_CHECKS, check_recipe
from rstar2_env.trainers import TRAINERS, Recipe

SOUND = Recipe(
    name="mine",
    summary="Half of GRPO and half of something else",
    selector="roc:mode=rank",
    loss=("ppo_clip:high=0.3", "kl:coef=1e-3"),
    hook=("kl_schedule",),
    defaults={"rollout": {"oversample": 2}, "optim": {"learning_rate": 2e-6}},
)


class Stubborn(Recipe):
    def configure(self, *layers):
        return Recipe.configure(self, *layers, {"steps": 3})


class Forgetful(Recipe):
    def configure(self, *layers):
        return Recipe.configure(self, *layers, {"seed": 3} if "parts" in layers[0] else {})


def of(kind):
    return kind(**{name: getattr(SOUND, name) for name in Recipe.__dataclass_fields__})


MUTANTS = [
    (replace(SOUND, summary="Mine"), "description", "describe it in one line"),
    (replace(SOUND, selector="rok"), "resolves", "'rok'"),
    (replace(SOUND, selector="roc:mode=best"), "resolves", "mode"),
    (replace(SOUND, defaults={"rollout": {"oversampel": 2}}), "resolves", "oversample"),
    (replace(SOUND, loss=("kl:coef=0",)), "trains", "no term of its loss depends on the policy: Kl"),
    (of(Stubborn), "the_users_options_win", "the run does not use steps=7"),
    (of(Forgetful), "record", "its options differ"),
]
EVERY = set(RECIPE_CHECKS) - {"description"}


def test_a_sound_recipe_passes_every_check():
    # Those of the registry are checked in tests/trainers/test_every_part.py.
    assert check_recipe(SOUND) == list(RECIPE_CHECKS)


@pytest.mark.parametrize(
    ("mutant", "check", "words"), MUTANTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_recipe, mutant)
    assert words in found[check]
    # What does not resolve breaks every clause that looks at it.
    assert set(found) <= (EVERY if check == "resolves" else {check})


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(RECIPE_CHECKS)


def test_a_recipe_registered_under_another_name_is_found():
    TRAINERS.register("yours", SOUND)
    try:
        assert "registered as 'yours', but its name is 'mine'" in broken(check_recipe, "yours")["description"]
    finally:
        TRAINERS._parts.pop("yours")
    with pytest.raises(UnknownNameError, match="grpo_roc"):
        check_recipe("grpo_rok")
