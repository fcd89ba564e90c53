"""Trainers for text environments: recipes selected by name, and the parts they combine.

Each name is loaded on first use, so that listing parts loads no code that creates or runs a trainer.
"""

from typing import TYPE_CHECKING

from rstar2_env.core.lazy_names import lazy_names

if __name__ != "rstar2_env.trainers":
    raise ImportError(
        f"This folder is the package rstar2_env.trainers and was imported as {__name__!r}, which would make a "
        "second copy of its registry. Install the distribution (pip install -e .) and import rstar2_env.trainers."
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
    "SftOptions",
    "Start",
    "StepOptions",
    "StepServices",
    "Tokens",
    "TrainConfig",
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

_WHERE = {
    "ADVANTAGES": "advantages.base",
    "AGGREGATIONS": "losses.base",
    "Advantage": "advantages.base",
    "Batch": "step.batch",
    "CORRECTIONS": "losses.base",
    "Collector": "step.collector",
    "HOOKS": "hooks.base",
    "KeepAll": "selectors.keep_all",
    "LOSSES": "losses.base",
    "Budgets": "hooks.state",
    "GroupResult": "samplers.base",
    "Play": "rollouts.base",
    "ROLLOUTS": "rollouts.base",
    "Ranks": "ranks",
    "Recipe": "base",
    "ResampleOnCorrect": "selectors.resample_on_correct",
    "Rollout": "rollouts.base",
    "RunState": "hooks.state",
    "SAMPLERS": "samplers.base",
    "SELECTORS": "selectors.base",
    "Sampler": "samplers.base",
    "Selector": "selectors.base",
    "SftOptions": "options.cold_start",
    "Start": "samplers.base",
    "StepOptions": "step.collector_parts",
    "StepServices": "step.collector_parts",
    "TRAINERS": "base",
    "Tokens": "losses.tokens",
    "TrainConfig": "options.config",
    "TrainResult": "base",
    "Trainer": "base",
    "Uniform": "samplers.uniform",
    "demo": "demonstration.start",
    "export_model": "export.export",
    "find_recipe": "api",
    "make": "api",
    "read_config": "options.files",
    "read_traces": "rstar2_env.traces.reading",
    "sft": "api",
}
"""The module of each name."""


if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
