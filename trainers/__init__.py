"""Trainers for text environments: recipes selected by name, and the parts they combine.

Each name is loaded on first use, so that listing parts loads no code that creates or runs a trainer.
"""

from typing import TYPE_CHECKING

from rstar2_env.core.lazy_names import lazy_names

if __name__ != "rstar2_env.trainers":
    raise ImportError(
        f"The folder trainers was imported as {__name__!r}, but it is the package rstar2_env.trainers; a "
        "second import would make a second copy of its list of trainers. Install the package (pip "
        "install -e .) and import rstar2_env.trainers."
    )

if TYPE_CHECKING:
    from rstar2_env.traces.reading import read_traces

    from .advantages.base import ADVANTAGES, Advantage
    from .api import find_recipe, make, sft
    from .base import TRAINERS, Recipe, Trainer, TrainResult
    from .demonstration.start import demo
    from .export.export import export_model
    from .hooks.base import HOOKS
    from .hooks.state import Budgets, RunState
    from .losses.base import AGGREGATIONS, CORRECTIONS, LOSSES
    from .losses.tokens import Tokens
    from .options.cold_start import SftOptions
    from .options.config import TrainConfig
    from .options.files import read_config
    from .options.keywords import SftKeywords, TrainKeywords
    from .ranks import Ranks
    from .rollouts.base import ROLLOUTS, Play, Rollout
    from .samplers.base import SAMPLERS, GroupResult, Sampler, Start
    from .samplers.uniform import Uniform
    from .selectors.base import SELECTORS, Selector
    from .selectors.keep_all import KeepAll
    from .selectors.resample_on_correct import ResampleOnCorrect
    from .step.batch import Batch
    from .step.collector import Collector
    from .step.collector_parts import StepOptions, StepServices

__all__ = [
    "ADVANTAGES",
    "AGGREGATIONS",
    "CORRECTIONS",
    "HOOKS",
    "LOSSES",
    "ROLLOUTS",
    "SAMPLERS",
    "SELECTORS",
    "TRAINERS",
    "Advantage",
    "Batch",
    "Budgets",
    "Collector",
    "GroupResult",
    "KeepAll",
    "Play",
    "Ranks",
    "Recipe",
    "ResampleOnCorrect",
    "Rollout",
    "RunState",
    "Sampler",
    "Selector",
    "SftKeywords",
    "SftOptions",
    "Start",
    "StepOptions",
    "StepServices",
    "Tokens",
    "TrainConfig",
    "TrainKeywords",
    "TrainResult",
    "Trainer",
    "Uniform",
    "demo",
    "export_model",
    "find_recipe",
    "make",
    "read_config",
    "read_traces",
    "sft",
]

_MODULES = {
    "advantages.base": ("ADVANTAGES", "Advantage"),
    "api": ("find_recipe", "make", "sft"),
    "base": ("TRAINERS", "Recipe", "TrainResult", "Trainer"),
    "demonstration.start": ("demo",),
    "export.export": ("export_model",),
    "hooks.base": ("HOOKS",),
    "hooks.state": ("Budgets", "RunState"),
    "losses.base": ("AGGREGATIONS", "CORRECTIONS", "LOSSES"),
    "losses.tokens": ("Tokens",),
    "options.cold_start": ("SftOptions",),
    "options.config": ("TrainConfig",),
    "options.files": ("read_config",),
    "options.keywords": ("SftKeywords", "TrainKeywords"),
    "ranks": ("Ranks",),
    "rollouts.base": ("ROLLOUTS", "Play", "Rollout"),
    "rstar2_env.traces.reading": ("read_traces",),
    "samplers.base": ("SAMPLERS", "GroupResult", "Sampler", "Start"),
    "samplers.uniform": ("Uniform",),
    "selectors.base": ("SELECTORS", "Selector"),
    "selectors.keep_all": ("KeepAll",),
    "selectors.resample_on_correct": ("ResampleOnCorrect",),
    "step.batch": ("Batch",),
    "step.collector": ("Collector",),
    "step.collector_parts": ("StepOptions", "StepServices"),
}
"""The modules of this package, each with the public names that it defines."""


if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__, __dir__ = lazy_names(__name__, {name: module for module, names in _MODULES.items() for name in names})
