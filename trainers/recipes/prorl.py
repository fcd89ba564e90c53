"""``prorl``: long training with a reference model that is reset if results stop improving (ProRL, arXiv 2505.24864).

DAPO's dynamic sampling and clip-higher with a wider bound (0.4), temperature 1.2, and a small KL term. After two
consecutive evaluations without improvement, the policy becomes the reference model and the optimizer's moments are
reset; an evaluation is played every 20 steps (the paper does not state the interval). A step has 256 problems with 16
episodes each, in four minibatches. The learning rate is 2e-6. The paper does not state the weight of the KL term; this
package uses 1e-4. ``--set hook.length_stages.tokens=1+2`` doubles the token budget in the second half of the run.
"""

from ..base import TRAINERS, Recipe

PRORL = Recipe(
    name="prorl",
    summary="ProRL: clip-higher, dynamic sampling, and a KL term whose reference is reset if results stop improving",
    paper="arXiv 2505.24864",
    source="arXiv 2505.24864, sections 2.3 and 3.2; no released code was found on 2026-11-30",
    checked="2026-11-24",
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=0.2,high=0.4", "kl:coef=1e-4"),
    hook=("reference_reset",),
    defaults={
        "rollout": {"problems_per_step": 256, "group_size": 16, "temperature": 1.2, "refill": 9},
        "optim": {"learning_rate": 2e-6, "minibatches": 4},
        "eval": {"every": 20},
    },
)

TRAINERS.register("prorl", PRORL)
