r"""``grpo_tcr``: a smaller penalty for wrong answers after more turns (Demystifying Agentic RL, arXiv 2510.11701).

GRPO-TCR combines clip-higher, the mean over tokens and DAPO's overlong penalty, without a KL term. The reward is 1 for
a right answer and $\min(-0.6, -1 + 0.1 \frac{\text{turns} - 2}{2})$ for a wrong one, where the turns of the environment
count too. Groups whose answers are all right or all wrong are replaced, in at most nine further rounds. A step has 64
problems with 16 episodes each, in four minibatches. An episode has at most 16 turns and 20,480 tokens.
"""

from ..base import TRAINERS, Recipe

GRPO_TCR = Recipe(
    name="grpo_tcr",
    summary="GRPO-TCR: clip-higher, overlong penalty, and a smaller penalty for wrong answers after more turns",
    paper="arXiv 2510.11701",
    source="Gen-Verse/Open-AgentRL@1fe5dbd, recipe/demystify/grpo_tcr_qwen2_7b.sh and reward.py",
    checked="2026-11-24",
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
