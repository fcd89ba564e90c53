"""``grpo_tcr``: wrong answers cost less the more turns were tried (Demystifying Agentic RL, arXiv 2510.11701).

GRPO-TCR: clip-higher, the mean over tokens, the overlong punishment of DAPO, no KL term, and a reward of 1 for a right
answer and of min(-0.6, -1 + 0.1 (turns - 2) / 2) for a wrong one. 16 episodes of 64 problems in four minibatches, 16
turns at most, a limit of 20,480 tokens.
"""

from ..base import TRAINERS, Recipe

GRPO_TCR = Recipe(
    name="grpo_tcr",
    summary="GRPO-TCR: clip-higher, overlong punishment, and wrong answers that cost less after more turns",
    paper="arXiv 2510.11701",
    reward=("outcome", "wrong_by_turns", "overlong"),
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=0.2,high=0.28",),
    defaults={
        "rollout": {
            "problems_per_step": 64,
            "group_size": 16,
            "refill": 9,
            "max_episode_tokens": 20480,
            "env_options": {"max_turns": 16},
        },
        "optim": {"minibatches": 4},
    },
)

TRAINERS.register("grpo_tcr", GRPO_TCR)
