"""``envgen``: kinds of problems in proportion to how often they fail, cycle by cycle (EnvGen, arXiv 2403.12014).

The problems must be of several kinds, one a skill: a mixture, or a file with a field that names them (``sampler.by``).
The paper adapts with a language model, which writes environments, and trains with PPO; this adapts the shares of the
environments that there are, and trains with GRPO.
"""

from ..base import TRAINERS, Recipe

ENVGEN = Recipe(
    name="envgen",
    summary="EnvGen: kinds of problems in proportion to how often they fail, cycle by cycle",
    paper="arXiv 2403.12014",
    selector="all:reject_equal=true",
    sampler="skill_gap",
)

TRAINERS.register("envgen", ENVGEN)
