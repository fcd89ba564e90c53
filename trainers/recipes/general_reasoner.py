"""``general_reasoner``: a model compares answers with the gold answers (General-Reasoner, arXiv 2505.14652).

The reward is 0 for an answer that a judge (``rollout.judge``) refuses; for one that it accepts, it is 1 minus 0.05 for
each token by which the answer is longer or shorter than the gold answer, for up to 10 tokens; it is -0.5 without an
answer. As in the authors' script, ratios are clipped at 0.3, the KL term has the weight 1e-4 and the entropy bonus
0.001, each problem has 8 episodes, and a rollout has four optimizer steps with a learning rate of 5e-7. The authors
trained their own verifier, a model with 1.5B parameters.
"""

from ..base import TRAINERS, Recipe

GENERAL_REASONER = Recipe(
    name="general_reasoner",
    summary="General-Reasoner: GRPO on the verdict of a model, for answers of any domain",
    paper="arXiv 2505.14652",
    source="TIGER-AI-Lab/General-Reasoner@007e44c, train_general_reasoner.sh",
    checked="2026-11-24",
    reward=("model_verifier",),
    loss=("ppo_clip:low=0.3,high=0.3,dual=10", "kl:coef=1e-4", "entropy:coef=0.001"),
    defaults={"rollout": {"group_size": 8}, "optim": {"learning_rate": 5e-7, "minibatches": 4}},
)

TRAINERS.register("general_reasoner", GENERAL_REASONER)
