"""``rstar2_paper``: the training of rStar2-Agent as in its paper, with all three stages (arXiv 2508.20722).

As in sections 4.3 and 5.1 of the paper: 510 steps of 512 problems with 32 episodes each, of which 16 are trained on.
There is no refill and no KL term. The stages are:

1. 300 steps with 8K tokens and 10 turns per episode.
2. 85 steps with 12K tokens.
3. 125 steps with 15 turns, a new optimizer, and without the problems whose latest 8 episodes were all correct.

Before stage 3, the paper measures which problems are solved. To use such a measurement, train stage 3 in a separate
run, with configs/paper_stage3.toml and ``sampler=unsolved:rates=FOLDER``.
"""

from ..base import TRAINERS, Recipe

RSTAR2_PAPER = Recipe(
    name="rstar2_paper",
    summary="rStar2-Agent as in the paper: GRPO-RoC at full size, 510 steps in three stages",
    paper="arXiv 2508.20722",
    source="arXiv 2508.20722, sections 4.3 and 5.1; the released code differs: recipe rstar2_released",
    checked="2026-11-24",
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
