"""Entry points: make a trainer by name, and run a cold start (supervised fine-tuning on traces).

The backends are imported only when one of these functions is called, so that listing trainers needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rstar2_env.core.folders import check_folder
from rstar2_env.core.options import call_with_options
from rstar2_env.wrappers.make import make_env

from .base import TRAINERS, Trainer, needs_training_stack
from .cold_start import SftOptions
from .config import TrainConfig
from .model_name import check_model


def make(name: str, **options: Any) -> Trainer:
    """Make a trainer by name.

    Args:
        name: A name that ``rstar2 trainers`` lists.
        **options: Fields of ``TrainConfig``; ``model`` is required.

    Raises:
        UnknownNameError: No trainer has that name; the message suggests the nearest.
        ConfigurationError: An option is unknown, missing or out of its range.
        MissingExtraError: torch, transformers or TRL is not installed.
    """
    recipe = TRAINERS.get(name)
    config = recipe.configure(options)
    check_folder(config.output_dir, "output_dir")
    check_model(config.model)
    if isinstance(config.env, str):
        _try_environments(config)
    with needs_training_stack(f"The trainer {name!r}"):
        from .backends.trl.run import TrlRun
    return TrlRun(name, config)


def sft(traces: Iterable[Mapping[str, Any]], **options: Any) -> Path:
    """Fine-tune a model on tool-use traces (the cold start); return the folder of the final model.

    Args:
        traces: Records with ``messages``, as ``rstar2 traces`` writes them.
        **options: Fields of ``SftOptions``; ``model`` is required.

    Raises:
        ConfigurationError: An option is unknown, no trace is short enough, or the model cannot be loaded.
        ProblemFormatError: A record is not a trace.
        MissingExtraError: torch, transformers or TRL is not installed.
    """
    chosen = call_with_options("cold start", SftOptions, options)
    check_folder(chosen.output_dir, "output_dir")
    check_model(chosen.model)
    with needs_training_stack("The cold start"):
        from .backends.trl.sft import run_sft
    return run_sft(traces, chosen)


def _try_environments(config: TrainConfig) -> None:
    """Make the training and the evaluation environment once, so that a mistake shows before a model is loaded."""
    for options, wrappers in (
        (config.env_options, config.wrappers),
        ({**config.env_options, **config.eval_env_options}, config.eval_wrappers),
    ):
        make_env(config.env, wrappers=wrappers, **options).close()
