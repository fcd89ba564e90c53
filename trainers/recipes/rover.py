"""``rover``: values of the uniform policy as the policy's logits (ROVER, arXiv 2509.24981).

The advantage is the reward less the group's mean (``--set advantage=group_norm`` divides by the deviation, as the
authors do on math). The rollout is divided into four optimizer steps, sampled at 0.6. Equal rewards train too: the
values of what follows still move. No clipping, no KL term.
"""

from ..base import TRAINERS, Recipe

ROVER = Recipe(
    name="rover",
    summary="ROVER: regression towards the values of the uniform policy, for many different right answers",
    paper="arXiv 2509.24981",
    advantage="group_mean",
    loss=("rover",),
    defaults={"optim": {"minibatches": 4}, "rollout": {"temperature": 0.6}},
)

TRAINERS.register("rover", ROVER)
