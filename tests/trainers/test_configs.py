"""Every file of options is one that the trainers take."""

import inspect

import pytest
from places import ROOT

from rstar2_env import trainers
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.envs_registry.math_tool import MathToolEnv

CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
KNOWN = set(inspect.signature(MathToolEnv).parameters) | set(inspect.signature(ToolEnv).parameters)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_file_of_options_configures_grpo_roc(path):
    recipe, options = trainers.find_recipe(str(path))
    config = recipe.configure(options, {"model": "m"})
    assert (recipe.name, config.rollout.oversample) == ("grpo_roc", 2)
    assert set(config.eval_env_options) <= KNOWN


@pytest.mark.parametrize("name", ["paper_stage1", "paper_stage2", "paper_stage3", "released_code"])
def test_a_file_that_states_a_publication_names_its_sampler_and_its_refill(name):
    options = trainers.read_config(ROOT / "configs" / f"{name}.toml")
    assert options["parts"]["sampler"] == "uniform"
    assert options["rollout"]["refill"] == 0


def test_the_papers_numbers_are_in_its_recipe():
    rollout = trainers.read_config(CONFIGS[0].parent / "paper_stage1.toml")["rollout"]
    assert rollout["problems_per_step"] * rollout["group_size"] * rollout["oversample"] == 512 * 32
    assert (rollout["max_episode_tokens"], rollout["env_options"]["max_turns"]) == (8192, 10)
