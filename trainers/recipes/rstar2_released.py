"""``rstar2_released``: rStar2-Agent as in its released code, which differs from the paper (arXiv 2508.20722).

github.com/microsoft/rStar, 2025-09: right answers are ranked by their penalty instead of drawn, the dual clip is 3, and
1e-6 is added to the deviation. An episode ends after 5 turns, and a tool's output is cut at 256 characters. Evaluation
is greedy. The run has 200 steps of 128 problems. Not covered: the released code finds tool errors by searching text,
and gives every episode of a single turn the penalty for a wrong format.
"""

from ..base import TRAINERS, Recipe

RSTAR2_RELEASED = Recipe(
    name="rstar2_released",
    summary="rStar2-Agent as in the released code: GRPO-RoC that selects by rank, dual clip, 5 turns",
    paper="arXiv 2508.20722",
    source="microsoft/rStar@ecbfb94, examples/run_qwen3-14b_rstar2_agent_weave.sh and rstar2_agent; "
    "verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py for eps",
    checked="2026-11-24",
    selector="roc:mode=rank",
    advantage="group_norm:eps=1e-6",
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
