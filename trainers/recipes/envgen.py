"""``envgen``: draws kinds of problems by their failure rates, which are updated in cycles (EnvGen, arXiv 2403.12014).

The problems must have several kinds, one for each skill: a mixture, or a file with a field that names the kind
(``sampler.by``). In the paper, a language model writes new environments, and PPO trains the policy. Here, the shares of
existing environments are adapted, and GRPO trains the policy.
"""

from ..base import TRAINERS, Recipe

ENVGEN = Recipe(
    name="envgen",
    summary="EnvGen: kinds of problems are drawn in proportion to their failure rate, in cycles",
    paper="arXiv 2403.12014",
    source="aszala/EnvGen@f9d97db, environment_generation/update_environments.py (arXiv 2403.12014): after each "
    "cycle, the language model that changes the environments gets the success rate of each skill",
    checked="2026-11-28",
    selector="all:reject_equal=true",
    sampler="skill_gap",
)

TRAINERS.register("envgen", ENVGEN)
