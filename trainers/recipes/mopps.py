"""``mopps``: GRPO on problems with a predicted pass rate near one half (MoPPS, arXiv 2507.04632).

For each group there are 16 candidates. A pass rate is drawn from the posterior of each candidate; the problems whose
drawn rates are closest to one half are played. The paper combines this sampler with GRPO; clipping and selection are as
in ``grpo``.
"""

from ..base import TRAINERS, Recipe

MOPPS = Recipe(
    name="mopps",
    summary="MoPPS: GRPO on problems that are predicted to be of medium difficulty",
    paper="arXiv 2507.04632",
    selector="all:reject_equal=true",
    sampler="mopps",
)

TRAINERS.register("mopps", MOPPS)
