"""``saturn``: GRPO on levels of increasing difficulty (SATURN, arXiv 2505.16368).

Groups of 8 at temperature 0.8, a KL term with the weight 1e-3, learning rate 5e-7. The levels are the parts of a
mixture, or the values of the field ``level``. For the levels that the paper uses with 1.5B parameters: ``--env
rstar2/Saturn-v0 --set 'env.problems={"mix": [{"spec": "saturn:clauses=5"}, {"spec": "saturn:clauses=6"}]}'``.
"""

from ..base import TRAINERS, Recipe

SATURN = Recipe(
    name="saturn",
    summary="SATURN: GRPO on levels of increasing difficulty",
    paper="arXiv 2505.16368",
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3"),
    sampler="curriculum",
    defaults={"rollout": {"group_size": 8, "temperature": 0.8}, "optim": {"learning_rate": 5e-7}},
)

TRAINERS.register("saturn", SATURN)
