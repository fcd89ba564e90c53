"""``saturn``: GRPO on levels of increasing difficulty (SATURN, arXiv 2505.16368).

Groups of 8 at temperature 0.8, a KL term with the weight 1e-3, learning rate 5e-7, eight optimizer steps per rollout.
Every answer has the same weight, as in the authors' code for OpenRLHF. The levels are the parts of a mixture, or the
values of the field ``level``. For the levels that the paper uses with 1.5B parameters: ``--env rstar2/Saturn-v0 --set
'env.problems={"mix": [{"spec": "saturn:clauses=5"}, {"spec": "saturn:clauses=6"}]}'``.
"""

from ..base import TRAINERS, Recipe

SATURN = Recipe(
    name="saturn",
    summary="SATURN: GRPO on levels of increasing difficulty",
    paper="arXiv 2505.16368",
    source="gtxygyzb/Saturn-code@2cc9d74, scripts/train/grpo_1.5B_355_356.sh",
    checked="2026-11-24",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3"),
    aggregation="seq_mean",
    sampler="curriculum",
    defaults={
        "rollout": {"group_size": 8, "temperature": 0.8},
        "optim": {"learning_rate": 5e-7, "minibatches": 8},
    },
)

TRAINERS.register("saturn", SATURN)
