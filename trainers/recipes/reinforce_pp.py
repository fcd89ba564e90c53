"""``reinforce_pp``: returns of tokens, normalized over the batch (REINFORCE++, arXiv 2501.03262).

The recipe needs no groups, except with ``--set advantage.baseline=group``, which is REINFORCE++-baseline. The paper
subtracts the KL divergence of a token and all later tokens from its return. Here, the divergence is a term of the
loss, as in the paper's baseline form: the estimator k2 has the gradient of each token's divergence, but a token is not
credited with the divergence of later tokens. The weight 1e-3 is verl's; OpenRLHF uses 1e-5 for REINFORCE++-baseline.
"""

from ..base import TRAINERS, Recipe

REINFORCE_PP = Recipe(
    name="reinforce_pp",
    summary="REINFORCE++: returns of tokens, normalized over the whole batch, with a KL term",
    paper="arXiv 2501.03262",
    source="arXiv 2501.03262v8; OpenRLHF/OpenRLHF@3c3be623, "
    "examples/scripts/train_reinforce_baseline_hybrid_engine.sh; verl-project/verl@1dda039b9, "
    "verl/trainer/ppo/core_algos.py and examples/reinforce_plus_plus_trainer",
    checked="2026-11-24",
    advantage="reinforce_pp",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3,estimator=k2"),
)

TRAINERS.register("reinforce_pp", REINFORCE_PP)
