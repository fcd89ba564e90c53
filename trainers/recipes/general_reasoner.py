"""``general_reasoner``: a judge model compares answers with the gold answers (General-Reasoner, arXiv 2505.14652).

The reward of an answer that the judge (``rollout.judge``) rejects is 0. An accepted answer earns 1, minus 0.05 for each
token by which it is longer or shorter than the gold answer, for at most 10 tokens. An episode without an answer earns
-0.5. As in the authors' script, ratios are clipped to the range from 0.7 to 1.3, the KL term has the weight 1e-4 and
the entropy bonus 0.001, each problem has 8 episodes, and a rollout has four optimizer steps with a learning rate of
5e-7. The authors trained their own verifier, a model with 1.5B parameters.
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
