r"""``cog_rethinker``: DAPO with hints for problems that no episode solves (Cog-Rethinker, arXiv 2510.15979).

The policy is asked to decompose an unsolved problem, with solved problems as examples, and then to reflect on wrong
answers. Right answers that were found with help are trained on with the loss ``sft``, with only the question as the
prompt; the group itself is rejected, as in DAPO. Only a right answer earns a reward; DAPO's penalty on length is not
used. ``loss.sft.coef`` is the paper's $\lambda$. Its value and the number of refill rounds are this package's choices.
"""

from ..base import TRAINERS, Recipe

COG_RETHINKER = Recipe(
    name="cog_rethinker",
    summary="Cog-Rethinker: decompose unsolved problems and reflect on them; train on the results without these hints",
    paper="arXiv 2510.15979",
    source="the abstract of arXiv 2510.15979, and its reviews on OpenReview: the stages, DAPO with a supervised term, "
    "and the binary reward; none of these texts states lambda or the training details, and no released code was "
    "found on 2026-11-30",
    checked="2026-11-28",
    rollout="decompose",
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=0.2,high=0.28", "sft:coef=0.1"),
    defaults={"rollout": {"refill": 3}},
)

TRAINERS.register("cog_rethinker", COG_RETHINKER)
