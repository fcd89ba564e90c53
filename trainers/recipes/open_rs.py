"""``open_rs``: a reward with a cosine of the answer's length, for small machines (open-rs, arXiv 2503.16219).

A right answer earns 1 to 0.5 and a wrong answer -1 to -0.5, depending on its length; a correct format adds 1. Lengths
count the policy's tokens, up to the paper's 3,584. Each problem has 6 episodes; temperature 0.7, learning rate 1e-6.
"""

from ..base import TRAINERS, Recipe

OPEN_RS = Recipe(
    name="open_rs",
    summary="open-rs: a reward with a cosine of the answer's length, for small models",
    paper="arXiv 2503.16219",
    reward=("cosine_length:longest=3584", "answer_format"),
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={"rollout": {"group_size": 6, "temperature": 0.7, "max_episode_tokens": 3584}},
)

TRAINERS.register("open_rs", OPEN_RS)
