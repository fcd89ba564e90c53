"""``rstar2_released``: the released code of rStar2-Agent where it differs from the paper (arXiv 2508.20722).

github.com/microsoft/rStar, 2025-09: right answers are ranked by their penalty instead of drawn, the dual clip is at 3,
episodes end after 5 turns, a tool's output is cut at 256 characters, evaluation is greedy; 200 steps of 128 problems.
It finds tool errors by text, and fails every answer in one turn by its format, which is not done here.
"""

from ..base import TRAINERS, Recipe

RSTAR2_RELEASED = Recipe(
    name="rstar2_released",
    summary="rStar2-Agent as in the released code: GRPO-RoC by rank, dual clip, 5 turns",
    paper="arXiv 2508.20722",
    selector="roc:mode=rank",
    loss=("ppo_clip:low=0.2,high=0.28,dual=3",),
    defaults={
        "run": {"steps": 200},
        "rollout": {
            "problems_per_step": 128,
            "group_size": 16,
            "oversample": 2,
            "max_episode_tokens": 8192,
            "env_options": {"max_turns": 5, "max_output": 256},
        },
        "optim": {"learning_rate": 1e-6, "warmup_steps": 20},
        "eval": {"temperature": 0.0},
    },
)

TRAINERS.register("rstar2_released", RSTAR2_RELEASED)
