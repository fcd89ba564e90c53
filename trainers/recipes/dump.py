"""``dump``: GRPO on a mixture of problems; a bandit learns the share of each kind (DUMP, arXiv 2504.09710).

The problems must have several kinds: a mixture, or a file with a field that names the kind (``sampler.by``). Kinds with
larger advantages are drawn more often. As in the authors' script, ratios are clipped to the range from 0.8 to 1.2, the
KL term has the weight 1e-3, and a rollout has four optimizer steps.
"""

from ..base import TRAINERS, Recipe

DUMP = Recipe(
    name="dump",
    summary="DUMP: GRPO on a mixture in which kinds of problems with large advantages are drawn most often",
    paper="arXiv 2504.09710",
    source="ZhentingWang/DUMP@235e85d, main_grpo_Qwen2.5-7B-Instruct-1M_combined_logic_longseq_combinedkk.sh",
    checked="2026-11-24",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3"),
    sampler="dump",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("dump", DUMP)
