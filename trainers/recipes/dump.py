"""``dump``: GRPO on a mixture whose shares a bandit learns (DUMP, arXiv 2504.09710).

The problems must have several kinds: a mixture, or a file with a field that names the kind (``sampler.by``). The larger
the advantages of a kind are, the more often it is drawn. Clipping and selection are as in ``grpo``.
"""

from ..base import TRAINERS, Recipe

DUMP = Recipe(
    name="dump",
    summary="DUMP: GRPO on a mixture in which kinds with large advantages are drawn most often",
    paper="arXiv 2504.09710",
    selector="all:reject_equal=true",
    sampler="dump",
)

TRAINERS.register("dump", DUMP)
