"""``reinforce_pp``: returns of tokens, normalized over the batch (REINFORCE++, arXiv 2501.03262).

It needs no groups, except with ``--set advantage.baseline=group``, which is REINFORCE++-baseline. The paper's KL
penalty on the reward is omitted, since rewards are verified; ``--set loss.kl.coef=1e-3 --set loss.kl.estimator=k2``
adds the KL term of the paper's second form.
"""

from ..base import TRAINERS, Recipe

REINFORCE_PP = Recipe(
    name="reinforce_pp",
    summary="REINFORCE++: returns of tokens, normalized over the whole batch",
    paper="arXiv 2501.03262",
    advantage="reinforce_pp",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("reinforce_pp", REINFORCE_PP)
