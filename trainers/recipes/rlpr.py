"""``rlpr``: the probability of the gold answer as the reward, without a verifier (RLPR, arXiv 2506.18254).

0.9 times what the reasoning adds to the mean probability of the gold answer's tokens, and 0.1 for the format; groups
whose rewards deviate less than half as much as usual are replaced. Clipping 0.2 and 0.27. For problems whose answers
are texts that no rule compares; the engine must compute log-probabilities of given tokens (``engine=transformers``).
"""

from ..base import TRAINERS, Recipe

RLPR = Recipe(
    name="rlpr",
    summary="RLPR: the probability of the gold answer after the reasoning, and groups that deviate enough",
    paper="arXiv 2506.18254",
    reward=("reference_probability:weight=0.9", "answer_format:weight=0.1"),
    selector="deviation",
    loss=("ppo_clip:low=0.2,high=0.27",),
    defaults={"rollout": {"refill": 3}},
)

TRAINERS.register("rlpr", RLPR)
