"""``open_rs``: a cosine over the length of the answer, on one small machine (open-rs, arXiv 2503.16219).

Correct answers earn 1 to 0.5 and wrong answers -1 to -0.5, depending on their length; a correct format adds 1.
Lengths are in the policy's tokens, up to the paper's 3,584. 6 episodes at temperature 0.7, learning rate 1e-6.
"""

from ..base import TRAINERS, Recipe

OPEN_RS = Recipe(
    name="open_rs",
    summary="open-rs: a cosine over the length of right and wrong answers, for small models",
    paper="arXiv 2503.16219",
    reward=("cosine_length:longest=3584", "answer_format"),
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={"rollout": {"group_size": 6, "temperature": 0.7, "max_episode_tokens": 3584}},
)

TRAINERS.register("open_rs", OPEN_RS)
