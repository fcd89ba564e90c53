"""Ways of learning from a text environment: recipes by name, and the parts they are made of."""

if __name__ != "rstar2_env.trainers":
    raise ImportError(
        f"This folder is the package rstar2_env.trainers and was imported as {__name__!r}, which would make a "
        "second copy of its registry. Install the distribution (pip install -e .) and import rstar2_env.trainers."
    )

from .advantages import Advantage, advantages
from .base import Recipe, Trainer, TrainResult, make, trainers
from .config import TrainConfig, read_config
from .demo import demo
from .samplers import ProblemSampler, Sampler, SeedSampler, Start
from .selectors import KeepAll, ResampleOnCorrect, Selector, selectors
from .sft import SftOptions, read_traces, sft

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
