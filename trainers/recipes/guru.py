"""``guru``: trains on several domains at once, each with its own reward (Guru, Reasoning360, arXiv 2506.14965).

GRPO on a mixture of sources (``rstar2/Mixture-v0``). The name of a problem's source selects its reward; a source
without a route ends the run with an error. By default, the paper's six domains use the reward of their environments;
``--set reward.router.routes='{"math": "return"}'`` changes the routes. As in the authors' script, ratios are clipped to
the range from 0.8 to 1.2, the loss is a mean over tokens without a KL term, and a rollout has eight optimizer steps.
"""

from ..base import TRAINERS, Recipe

GURU = Recipe(
    name="guru",
    summary="Guru: several domains at once, each with its own reward",
    paper="arXiv 2506.14965",
    source="LLM360/Reasoning360@13158341, scripts/train/example_multinode_rl_qwen2.5_32b_base_fsdp.sh",
    checked="2026-11-24",
    reward=("router",),
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={"optim": {"minibatches": 8}},
)

TRAINERS.register("guru", GURU)
