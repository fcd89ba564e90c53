"""``mopps``: GRPO on problems with a predicted pass rate near one half (MoPPS, arXiv 2507.04632).

For each group there are 16 candidates. A pass rate is drawn from the posterior of each candidate; the problems whose
drawn rates are closest to one half are played. As in the authors' scripts for mathematics, ratios are clipped to the
range from 0.8 to 1.28, the entropy bonus is 0.001, there is no KL term, and a rollout has two optimizer steps.
"""

from ..base import TRAINERS, Recipe

MOPPS = Recipe(
    name="mopps",
    summary="MoPPS: GRPO on problems that are predicted to be of medium difficulty",
    paper="arXiv 2507.04632",
    source="thu-rllab/MoPPS@a883f51, recipe/ours/scripts/math/math_verl_1.5b.sh",
    checked="2026-11-24",
    loss=("ppo_clip:low=0.2,high=0.28", "entropy:coef=0.001"),
    sampler="mopps",
    defaults={"optim": {"minibatches": 2}},
)

TRAINERS.register("mopps", MOPPS)
