"""``ruscarl``: rubrics as reward, and as help that decays (RuscaRL, arXiv 2508.16949).

A judge (``rollout.judge``) says which points of a problem's rubric an answer meets. Early in the run most episodes of
a group are told part of the rubric; all train under the question alone. KL to the reference 0.001, temperature 0.7.
Needs problems with ``meta["rubric"]``.
"""

from ..base import TRAINERS, Recipe

RUSCARL = Recipe(
    name="ruscarl",
    summary="RuscaRL: rubrics as reward, and shown to part of a group, less and less",
    paper="arXiv 2508.16949",
    rollout="rubric_scaffold",
    reward=("rubric",),
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3"),
    defaults={"rollout": {"temperature": 0.7, "group_size": 8}},
)

TRAINERS.register("ruscarl", RUSCARL)
