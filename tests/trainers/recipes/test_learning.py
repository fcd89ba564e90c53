"""Every recipe learns the letters from its own rollouts, on the whole path through TRL."""

import pytest

from rstar2_env import trainers

pytestmark = pytest.mark.train

SIZES = {"dapo": {"refill": 1, "minibatches": 1}, "gspo": {"steps": 60}}
"""What differs from 24 steps: fewer rounds and one step a rollout for DAPO, and four steps a rollout for GSPO."""


@pytest.mark.parametrize("name", ["dapo", "dr_grpo", "gspo", "lite_ppo", "rae", "reinforce", "reinforce_pp", "rloo"])
def test_a_recipe_learns(name, letter_options):
    sizes = {"steps": 24, "problems_per_step": 8, "tokens_per_device": 32 * 16, "learning_rate": 1e-2, "threads": 1}
    trainer = trainers.make(name, **{**letter_options, **sizes, **SIZES.get(name, {})})
    try:
        history = trainer.train().history
    finally:
        trainer.close()
    rates = [line["rollout/pass_rate"] for line in history if "rollout/pass_rate" in line]
    assert sum(rates[:3]) / 3 < 0.5
    assert sum(rates[-3:]) / 3 > 0.7
