"""``r1_ci``: GRPO in stages of falling potential for improvement (R1-Code-Interpreter, arXiv 2505.21668).

Four stages, each of which adds a quarter of the problems, by falling 4 p (1 - p). The pass rates p are those of a first
pass, or of an evaluation (``sampler.rates=FOLDER``; the paper plays 20 episodes of each problem). At most 8 calls of a
tool in the paper: ``--set env.max_turns=9``.
"""

from ..base import TRAINERS, Recipe

R1_CI = Recipe(
    name="r1_ci",
    summary="R1-Code-Interpreter: GRPO in stages, from the problems with the highest potential on",
    paper="arXiv 2505.21668",
    selector="all:reject_equal=true",
    sampler="potential",
)

TRAINERS.register("r1_ci", R1_CI)
