r"""``gvpo``: a least-squares fit of implied rewards to the actual rewards (GVPO, arXiv 2504.19599).

The implied reward of an answer is $\beta$ times its log-ratio, with $\beta = 0.1$ as in the authors' code. The implied
and the actual rewards are centred on the group's mean, and the loss is a mean over answers. Each step needs one more
forward pass. The groups of a rollout are divided into four optimizer steps; in a single step the loss would be a policy
gradient.
"""

from ..base import TRAINERS, Recipe

GVPO = Recipe(
    name="gvpo",
    summary="GVPO: rewards implied by the change of the policy are fitted to the rewards of a group",
    paper="arXiv 2504.19599",
    source="jszkc/GVPO@627aa25, GVPO/run_qwen2-7b_math_gvpo.sh",
    checked="2026-11-24",
    advantage="group_mean",
    loss=("gvpo",),
    aggregation="const_len:length=1",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("gvpo", GVPO)
