"""``mopps``: GRPO on problems that are predicted to be of middling difficulty (MoPPS, arXiv 2507.04632).

Of 16 candidates for each group, those are played whose pass rate, drawn from a posterior, is nearest to one half. The
paper puts it before GRPO as it is; clipping and selection are those of ``grpo``.
"""

from ..base import TRAINERS, Recipe

MOPPS = Recipe(
    name="mopps",
    summary="MoPPS: GRPO on problems that are predicted to be of middling difficulty",
    paper="arXiv 2507.04632",
    selector="all:reject_equal=true",
    sampler="mopps",
)

TRAINERS.register("mopps", MOPPS)
