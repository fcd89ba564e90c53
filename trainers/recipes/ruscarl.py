"""``ruscarl``: uses rubrics as the reward, and as hints that decrease over the run (RuscaRL, arXiv 2508.16949).

A judge (``rollout.judge``) decides which criteria of a problem's rubric an answer meets. Early in the run, the prompts
of most episodes of a group show a part of the rubric; the loss is computed with a prompt that holds only the question.
The KL term has the weight 0.001, the temperature is 0.7, and a rollout has two optimizer steps. The problems need
``meta["rubric"]``.
"""

from ..base import TRAINERS, Recipe

RUSCARL = Recipe(
    name="ruscarl",
    summary="RuscaRL: rubrics as the reward, and as help that decreases over the run",
    paper="arXiv 2508.16949",
    source="IANNXANG/RuscaRL@18e2b01, RuscaRL_example/Qwen2.5-7B-Instruct/healthbench_RuscaRL.sh",
    checked="2026-11-24",
    rollout="rubric_scaffold",
    reward=("rubric",),
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3"),
    defaults={"rollout": {"temperature": 0.7, "group_size": 8}, "optim": {"minibatches": 2}},
)

TRAINERS.register("ruscarl", RUSCARL)
