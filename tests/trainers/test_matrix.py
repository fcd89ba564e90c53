"""Every recipe trains in three unlike environments, or refuses one and says why: CI tries one of them."""

from __future__ import annotations

import gc
import math
import zlib

import pytest
from recipe_run import train_recipe
from safetensors.torch import load_file
from scripted_policy import WORLDS

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.demonstration.tiny import make_tiny_model

pytestmark = pytest.mark.train

REFUSED: dict[tuple[str, str], str] = dict.fromkeys(
    ((recipe, "game") for recipe in ("acereason", "dump", "envgen", "policy_refresh", "saturn")),
    "chooses between kinds of problems",
) | dict.fromkeys((("ruscarl", world) for world in WORLDS), "'rubric' needs a judge")
REFUSED |= dict.fromkeys((("general_reasoner", world) for world in WORLDS), "needs a judge")
REFUSED |= dict.fromkeys((("alphamed", world) for world in WORLDS), "needs a gold answer that is one letter")
REFUSED |= dict.fromkeys((("swe_rl", world) for world in WORLDS), "needs the files of each problem")
REFUSED |= dict.fromkeys((("guru", world) for world in WORLDS), "not have a route for the source")
"""Of a recipe in an environment that it refuses: words of the reason."""
FLAT: dict[tuple[str, str], str] = {
    **dict.fromkeys((("rlpr", world) for world in ("puzzle", "game")), "the script answers without any reasoning"),
    **dict.fromkeys((("mt_r1_zero", world) for world in ("puzzle", "game")), "no answer is near to the gold one"),
}
"""Of a recipe in an environment whose episodes its reward does not tell apart: why. Nothing is learned there."""
CELLS = [(recipe, world) for recipe in trainers.TRAINERS for world in WORLDS]


def chosen_world(recipe):
    """One world for a recipe, by its name: where it learns, if there is such a world."""
    worlds = [world for world in WORLDS if (recipe, world) not in {*REFUSED, *FLAT}] or list(WORLDS)
    return worlds[zlib.crc32(recipe.encode()) % len(worlds)]


SHORT = [(recipe, chosen_world(recipe)) for recipe in trainers.TRAINERS]

TAUGHT = ("kdrl", "opd")
"""Recipes that name no teacher of their own."""


OWN = {"prorl": {"hook": ["reference_reset:most_kl=100"], "eval": {"every": 0}}}
"""Options of a recipe: an evaluation without a single call has no share of failing calls, which is not a number."""


def train(recipe, world, tiny_model, folder):
    """Take two optimizer steps."""
    taught = dict(OWN.get(recipe, {}))
    if recipe in TAUGHT:
        taught["teacher"] = str(make_tiny_model(folder.parent / "teacher", hidden=32, layers=1, seed=1))
    return train_recipe(recipe, world, tiny_model, folder, **taught)


@pytest.fixture(scope="module", autouse=True)
def _collected_once():
    import rstar2_env.trainers.backends.trl.run.build  # noqa: F401 - before it is frozen, since the first run would import it

    gc.collect()
    gc.freeze()  # accelerate collects garbage after every run, and all of TRL would be looked through each time
    yield
    gc.unfreeze()


def check(recipe, world, tiny_model, folder):
    """Train, and see that both steps were taken and the weights moved, or that the refusal is the one that is known."""
    if (recipe, world) in REFUSED:
        with pytest.raises(ConfigurationError, match=REFUSED[recipe, world]):
            train(recipe, world, tiny_model, folder)
        return
    result = train(recipe, world, tiny_model, folder)
    steps = [line for line in result.history if "loss" in line]
    assert [line["step"] for line in steps] == [1, 2]
    assert [name for line in steps for name, value in line.items() if not math.isfinite(value)] == []
    if (recipe, world) in FLAT:
        assert max(line["grad_norm"] for line in steps) == 0
        return
    assert max(line["grad_norm"] for line in steps) > 0
    before, after = load_file(tiny_model / "model.safetensors"), load_file(result.model_dir / "model.safetensors")
    assert any(not before[name].equal(weights) for name, weights in after.items())
    played = read_run(result.output_dir).episodes(1)
    assert len(played) >= 8
    assert all(each.episode.available for each in played)


@pytest.mark.parametrize(("recipe", "world"), SHORT)
def test_a_recipe_trains_in_one_of_the_worlds(recipe, world, tiny_model, tmp_path):
    check(recipe, world, tiny_model, tmp_path / "run")


@pytest.mark.proof
def test_every_recipe_trains_in_every_world(tiny_model, tmp_path, record_property):
    failed = {}
    for recipe, world in CELLS:
        try:
            check(recipe, world, tiny_model, tmp_path / f"{recipe}-{world}")
        except Exception as error:
            failed[recipe, world] = f"{type(error).__name__}: {error}"[:300]
    record_property("recipes", len(CELLS) // len(WORLDS))
    record_property("worlds", ", ".join(world.env for world in WORLDS.values()))
    record_property("trained for two steps", len(CELLS) - len(REFUSED) - len(failed))
    record_property("refused with a reason", len(REFUSED))
    assert failed == {}


def test_no_refusal_is_expected_of_a_recipe_that_is_not_there():
    assert set(REFUSED) | set(FLAT) <= set(CELLS)
