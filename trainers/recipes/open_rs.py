"""``open_rs``: GRPO for small machines, with a reward that depends on the answer's length (open-rs, arXiv 2503.16219).

The reward is a cosine of the length: a right answer earns 2 if it is short and 1 if it is long, a wrong answer -2 if it
is short and -1 if it is long; a correct format adds 1. These are the weights of the released code (format 1, cosine 2).
Lengths count the policy's tokens, up to the paper's 3,584. Each problem has 6 episodes, at temperature 0.7. The
learning rate rises to 1e-6 over the first tenth of the 500 steps, and then falls to a tenth of that with a cosine
schedule. The released code counts characters instead of tokens; with its default arguments, it gives a short wrong
answer 0 instead of -2, and uses TRL's default, a KL term with the weight 0.04, which the paper does not mention:
``--set loss.kl.coef=0.04``.
"""

from ..base import TRAINERS, Recipe

OPEN_RS = Recipe(
    name="open_rs",
    summary="open-rs: a reward that varies with the answer's length along a cosine, for small models",
    paper="arXiv 2503.16219",
    source="knoveleng/open-rs@2889c47, recipes/grpo.yaml, src/open_r1/rewards.py and README.md (experiment 3)",
    checked="2026-11-24",
    reward=("cosine_length:longest=3584,weight=2", "answer_format"),
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={
        "run": {"steps": 500},
        "rollout": {"group_size": 6, "temperature": 0.7, "max_episode_tokens": 3584},
        "optim": {
            "learning_rate": 1e-6,
            "warmup_steps": 50,
            "lr_scheduler": "cosine_with_min_lr",
            "trl_options": {"lr_scheduler_kwargs": {"min_lr_rate": 0.1}},
        },
    },
)

TRAINERS.register("open_rs", OPEN_RS)
