"""``r1_ci``: GRPO in stages, problems with high potential first (R1-Code-Interpreter, arXiv 2505.21668).

Training has four stages, each of which adds a quarter of the problems, in descending order of $4 p (1 - p)$. The pass
rate $p$ comes from a first pass over the problems, or from an evaluation (``sampler.rates=FOLDER``; the paper plays 20
episodes of each problem). The paper allows 8 tool calls per episode: ``--set env.max_turns=9``.
"""

from ..base import TRAINERS, Recipe

R1_CI = Recipe(
    name="r1_ci",
    summary="R1-Code-Interpreter: GRPO in stages, starting with problems of a medium pass rate",
    paper="arXiv 2505.21668",
    source="the reviews of arXiv 2505.21668 on OpenReview, which quote the potential, the stages and the limit "
    "of 8 calls; they do not state the clip; the released code, yongchao98/R1-Code-Interpreter, could not be read on "
    "2026-11-30",
    checked="2026-11-24",
    selector="all:reject_equal=true",
    sampler="potential",
)

TRAINERS.register("r1_ci", R1_CI)
