"""``lite_ppo``: two techniques added to plain PPO without a critic (Lite PPO, arXiv 2508.08221, section 5).

The advantage is the reward minus the group's mean, divided by the batch's standard deviation; the loss is a mean over
tokens. The deviation is computed from the raw rewards, or with ``advantage.of=centred`` from the centred rewards; the
paper allows both readings. Ratios are clipped to the range from 0.8 to 1.2; there is no KL term. The paper samples with
temperature 0.99, ``top_p=0.99`` and ``top_k=100``.
"""

from ..base import TRAINERS, Recipe

LITE_PPO = Recipe(
    name="lite_ppo",
    summary="Lite PPO: rewards normalized by the group's mean and the batch's deviation, and a token-level mean",
    paper="arXiv 2508.08221",
    source="huggingface/trl@f2cd57710, docs/source/paper_index.md; alibaba/ROLL@8eb27cc2, docs_roll/docs/User "
    "Guides/Algorithms/LitePPO.md",
    checked="2026-11-24",
    advantage="group_mean_batch_std",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("lite_ppo", LITE_PPO)
