"""``rstar2_paper``: the training of rStar2-Agent as its paper states it, in all three stages (arXiv 2508.20722).

Sections 4.3 and 5.1: 510 steps of 512 problems, 32 episodes of each, of which 16 train; 8K tokens and 10 turns for 300
steps, 12K tokens for 85 more, then 15 turns, a fresh optimizer, and no problem whose latest 8 episodes are all right.
No refill, no KL term. The paper measures before stage 3 what is solved: as a run of its own, that is
configs/paper_stage3.toml with ``sampler=unsolved:rates=FOLDER``.
"""

from ..base import TRAINERS, Recipe

RSTAR2_PAPER = Recipe(
    name="rstar2_paper",
    summary="rStar2-Agent as in the paper: GRPO-RoC in three stages of 510 steps, at full size",
    paper="arXiv 2508.20722",
    selector="roc:mode=sample",
    sampler="unsolved:after=385,episodes=8",
    hook=("length_stages:tokens=1+1.5+1.5,steps=300+85,turns=10+10+15,reset=3",),
    defaults={
        "run": {"steps": 510, "save_every": 10},
        "rollout": {"problems_per_step": 512, "group_size": 16, "oversample": 2, "max_episode_tokens": 8192},
        "optim": {"learning_rate": 1e-6, "warmup_steps": 20},
        "eval": {"temperature": 0.6, "max_episode_tokens": 30720, "env_options": {"max_turns": 30}},
    },
)

TRAINERS.register("rstar2_paper", RSTAR2_PAPER)
