"""Ways of learning from a text environment: recipes by name, and the parts they are made of."""

if __name__ != "rstar2_env.trainers":
    raise ImportError(
        f"This folder is the package rstar2_env.trainers and was imported as {__name__!r}, which would make a "
        "second copy of its registry. Install the distribution (pip install -e .) and import rstar2_env.trainers."
    )

from .advantages.group import Advantage, advantages
from .base import Recipe, Trainer, TrainResult, make, trainers
from .cold_start import SftOptions, read_traces, sft
from .config import TrainConfig, read_config
from .demonstration.start import demo
from .samplers.fixed import ProblemSampler, Sampler, SeedSampler, Start
from .selectors.resample_on_correct import KeepAll, ResampleOnCorrect, Selector, selectors

__all__ = [
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
    "advantages",
    "demo",
    "make",
    "read_config",
    "read_traces",
    "selectors",
    "sft",
    "trainers",
]
