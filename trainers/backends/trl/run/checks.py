"""Checks of a run's options that need TRL and the engines, made before a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import Parameter
from torch.optim import SGD
from transformers import get_scheduler
from transformers.integrations.integration_utils import (
    INTEGRATION_TO_CALLBACK,
    get_available_reporting_integrations,
)
from trl import GRPOConfig

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import typed_options
from rstar2_env.core.options.rules import did_you_mean
from rstar2_env.rollout.engines.registry import typed_engine_options

from ....options.config import TrainConfig
from .refused_options import check_trl_options
from .rollouts import check_ahead


def check_config(config: TrainConfig) -> None:
    """Convert and check the options of the engine and of TRL, and check that the trackers are installed.

    Raises:
        UnknownNameError: No engine has this name.
        ConfigurationError: An option is unknown or invalid, or a tracker is unknown or not installed.
    """
    rollout, optim = config.rollout, config.optim
    rollout.engine_options = typed_engine_options(
        rollout.engine, rollout.engine_options, prefix="rollout.engine_options."
    )
    check_ahead(config)
    check_trl_options(optim.trl_options)
    optim.trl_options = typed_options("GRPOConfig of TRL", GRPOConfig, optim.trl_options, prefix="optim.trl_options.")
    check_schedule(config)
    check_trackers(config.run.report_to)


def check_schedule(config: TrainConfig) -> None:
    """Check the learning rate schedule, before a model is loaded.

    Raises:
        ConfigurationError: The schedule needs options that ``optim.trl_options.lr_scheduler_kwargs`` does not have.
    """
    optim = config.optim
    given = optim.trl_options.get("lr_scheduler_kwargs") or {}
    weights = SGD([Parameter(torch.zeros(1))], lr=optim.learning_rate or 1.0)
    try:
        get_scheduler(
            optim.lr_scheduler,
            weights,
            num_warmup_steps=0,
            num_training_steps=max(config.run.steps, 1),
            scheduler_specific_kwargs=dict(given),
        )
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"The learning rate schedule {optim.lr_scheduler!r} cannot be created with "
            f"trl_options.lr_scheduler_kwargs={dict(given)}: {error}",
            option="optim.lr_scheduler",
        ) from error


def check_trackers(names: Sequence[str]) -> None:
    """Check that every named experiment tracker is known and installed.

    Raises:
        ConfigurationError: transformers does not know a tracker, or its package is not installed.
    """
    installed = get_available_reporting_integrations()
    for name in names:
        if name in ("all", "none") or name in installed:
            continue
        if name not in INTEGRATION_TO_CALLBACK:
            raise ConfigurationError(
                "run.report_to names the unknown service "
                f"{name!r}.{did_you_mean(name, INTEGRATION_TO_CALLBACK)} Known services: "
                f"{', '.join(sorted(INTEGRATION_TO_CALLBACK))}."
            )
        raise ConfigurationError(
            f"run.report_to names the service {name!r}, whose Python package is not installed: install it, or "
            "remove the service."
        )
