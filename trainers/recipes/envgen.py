"""``envgen``: draws kinds of problems by their failure rates, which are updated in cycles (EnvGen, arXiv 2403.12014).

The problems must have several kinds, one for each skill: a mixture, or a file with a field that names the kind
(``sampler.by``); their shares are adapted. To generate configurations, as in the paper, name the options of the world
to vary: ``--set sampler=generated_worlds --set 'sampler.vary={"numbers": [2, 3, 4]}'``. A rule, or a language model if
``sampler.designer`` names one, chooses the values of these options. In the paper, PPO trains the policy; here, GRPO
does.
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
