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
    options = trainers.read_config(path)
    config = trainers.TRAINERS.get("grpo_roc").configure({"model": "m", **options})
    assert config.oversample == 2
    assert set(config.env_options) | set(config.eval_env_options) <= KNOWN


def test_the_papers_numbers_are_in_its_recipe():
    options = trainers.read_config(CONFIGS[0].parent / "paper_stage1.toml")
    played = options["problems_per_step"] * options["group_size"] * options["oversample"]
    assert played == 512 * 32
    assert (options["max_episode_tokens"], options["env_options"]["max_turns"]) == (8192, 10)
