"""Trainers for text environments: recipes selected by name, and the parts they combine."""

if __name__ != "rstar2_env.trainers":
    raise ImportError(
        f"This folder is the package rstar2_env.trainers and was imported as {__name__!r}, which would make a "
        "second copy of its registry. Install the distribution (pip install -e .) and import rstar2_env.trainers."
    )

from .advantages.base import ADVANTAGES, Advantage
from .api import make, sft
from .base import TRAINERS, Recipe, Trainer, TrainResult
from .cold_start import SftOptions, read_traces
from .config import TrainConfig, read_config
from .demonstration.start import demo
from .samplers.fixed import ProblemSampler, Sampler, SeedSampler, Start
from .selectors.base import SELECTORS, Selector
from .selectors.keep_all import KeepAll
from .selectors.resample_on_correct import ResampleOnCorrect

__all__ = [
    "ADVANTAGES",
    "SELECTORS",
    "TRAINERS",
    "Advantage",
    "KeepAll",
    "ProblemSampler",
    "Recipe",
    "ResampleOnCorrect",
    "Sampler",
    "SeedSampler",
    "Selector",
    "SftOptions",
    "Start",
    "TrainConfig",
    "TrainResult",
    "Trainer",
    "demo",
    "make",
    "read_config",
    "read_traces",
    "sft",
]
