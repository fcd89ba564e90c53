"""``dump``: GRPO on a mixture whose shares a bandit learns (DUMP, arXiv 2504.09710).

The problems must be of several kinds: a mixture, or a file with a field that names them (``sampler.by``). A kind comes
the more often, the larger its advantages are. Clipping and selection are those of ``grpo``.
"""

from ..base import TRAINERS, Recipe

DUMP = Recipe(
    name="dump",
    summary="DUMP: GRPO on a mixture in which the kinds that teach most come most often",
    paper="arXiv 2504.09710",
    selector="all:reject_equal=true",
    sampler="dump",
)

TRAINERS.register("dump", DUMP)
