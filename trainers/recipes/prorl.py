"""``prorl``: long training held to a reference that is reset when it stalls (ProRL, arXiv 2505.24864).

DAPO's dynamic sampling and clip-higher with a wider bound (0.4), temperature 1.2, and a small KL term; when two
evaluations in a row are no better (``eval.every`` must be set, else nothing is ever reset), the reference model becomes
the policy and the optimizer forgets its moments. 16 episodes of 256 problems, in four minibatches; the paper does not
give the weight of the KL term and the learning rate, and 1e-4 and 2e-6 are this package's. Late in the run the context
doubles: ``--set hook.length_stages.tokens=1+2``.
"""

from ..base import TRAINERS, Recipe

PRORL = Recipe(
    name="prorl",
    summary="ProRL: clip-higher, dynamic sampling, a KL term, and a hard reset of its reference when validation stalls",
    paper="arXiv 2505.24864",
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=0.2,high=0.4", "kl:coef=1e-4"),
    hook=("reference_reset",),
    defaults={
        "rollout": {"problems_per_step": 256, "group_size": 16, "temperature": 1.2, "refill": 9},
        "optim": {"learning_rate": 2e-6, "minibatches": 4},
    },
)

TRAINERS.register("prorl", PRORL)
