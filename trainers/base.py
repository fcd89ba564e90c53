"""Trainers and their results, and recipes: named algorithms, each a choice of parts and defaults.

A recipe is plain data and imports nothing heavy; ``api.make`` turns it into a trainer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.option_targets import options_of
from rstar2_env.core.options import call_with_options, nested_options, typed_options
from rstar2_env.core.parts import read_part
from rstar2_env.core.registry import Registry
from rstar2_env.env.named import find_env
from rstar2_env.env.options import env_options

from .advantages.base import ADVANTAGES, Advantage
from .config import TrainConfig, make_config
from .selectors.base import SELECTORS, Selector, Settles


@dataclass(frozen=True, slots=True)
class TrainResult:
    """The result of a training run.

    Attributes:
        output_dir: The run's folder.
        model_dir: Folder of the best weights by held-out evaluation; without evaluation, of the last weights.
        before: Held-out metrics before the first step; ``None`` without evaluation.
        after: Held-out metrics of the last evaluation; ``None`` without evaluation.
        best_step: Step of the weights in ``model_dir``.
        history: Logged metrics, one dict per step.
    """

    output_dir: Path
    model_dir: Path
    before: Mapping[str, float] | None
    after: Mapping[str, float] | None
    best_step: int
    history: list[dict[str, float]]


class Trainer(Protocol):
    """Learns from an environment through ``reset`` and ``step``."""

    config: TrainConfig

    def train(self) -> TrainResult:
        """Run all steps, with evaluations and checkpoints as the options say."""
        ...

    def evaluate(self) -> dict[str, float]:
        """Play the held-out episodes with the current weights; return the metrics."""
        ...

    def close(self) -> None:
        """Close the environments and the engine."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named algorithm: the parts of a trainer and their defaults.

    Attributes:
        name: Its name in the registry.
        summary: One line for the list of trainers.
        selector: Name of the selector, which chooses the episodes of a group to train on.
        selector_options: Options of the selector.
        advantage: Name of the advantage estimator.
        oversample: Episodes played for each one trained on.
        defaults: Options of the run that the algorithm prescribes; they override ``TrainConfig``'s defaults.
    """

    name: str
    summary: str
    selector: str = "all"
    selector_options: Mapping[str, Any] = field(default_factory=dict)
    advantage: str = "group_norm"
    oversample: int = 1
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def configure(self, options: Mapping[str, Any]) -> TrainConfig:
        """Build the options of a run: the caller's take precedence over the recipe's, those over the defaults.

        Raises:
            ConfigurationError: An option is unknown, missing or out of its range.
            UnknownNameError: No selector or advantage has that name.
        """
        chosen = {**self.defaults, **options}
        for name in _OF_PARTS:
            if name in chosen:
                chosen[name] = nested_options(name, chosen[name])
        selector = read_part(chosen.get("selector") or self.selector, SELECTORS.kind)
        chosen["selector"] = selector.name
        chosen["selector_options"] = {**chosen.get("selector_options", {}), **selector.options}
        if selector.name == self.selector:
            chosen["selector_options"] = {**self.selector_options, **chosen["selector_options"]}
        if chosen.get("advantage") is None:
            chosen["advantage"] = self.advantage
        if chosen.get("oversample") is None:
            chosen["oversample"] = self.oversample
        chosen.setdefault("eval_env_options", _held_out(chosen.get("env", "rstar2/MathTool-v0")))
        _type_parts(chosen)
        config = make_config(chosen)
        make_selector(config)
        make_advantage(config)
        return config


_OF_PARTS = ("env_options", "eval_env_options", "selector_options", "engine_options", "trl_options")
"""Options of a run that hold the options of one of its parts."""


def _held_out(env: Any) -> dict[str, Any]:
    """Options that select an environment's held-out problems; empty where it has no splits."""
    creator = find_env(env).creator
    takes = options_of(creator) if creator is not None else None
    return {"split": "test"} if takes is not None and (takes.open or "split" in takes.parameters) else {}


def _type_parts(chosen: dict[str, Any]) -> None:
    env = chosen.get("env", "rstar2/MathTool-v0")
    for name in ("env_options", "eval_env_options"):
        if chosen.get(name):
            chosen[name] = env_options(env, chosen[name], prefix=f"{name}.")
    name = chosen["selector"]
    chosen["selector_options"] = typed_options(
        f"selector {name!r}", SELECTORS.get(name), chosen.get("selector_options", {}), prefix="selector_options."
    )


TRAINERS: Registry[Recipe] = Registry("trainer", "rstar2_env.trainers.recipes", "rstar2_env.trainers")


@contextmanager
def needs_training_stack(what: str) -> Iterator[None]:
    """Turn a failed import of torch, transformers or TRL into an error that names the extra to install.

    Raises:
        MissingExtraError: One of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name in ("torch", "transformers", "trl", "accelerate", "datasets"):
            raise MissingExtraError("train", what) from error
        raise


def make_selector(config: TrainConfig) -> Selector:
    """Make the selector that the options name.

    Raises:
        UnknownNameError: There is no selector of that name.
        ConfigurationError: It does not take those options, or ``early_stop`` is on and it has no method ``settled``.
    """
    name = config.selector or "all"
    selector: Selector = call_with_options(f"selector {name!r}", SELECTORS.get(name), config.selector_options)
    if config.early_stop and not isinstance(selector, Settles):
        raise ConfigurationError(
            f"early_stop needs a selector that can tell when a group has enough episodes; {name!r} has no `settled`."
        )
    return selector


def make_advantage(config: TrainConfig) -> Advantage:
    """Return the advantage estimator that the options name.

    Raises:
        UnknownNameError: There is no estimator of that name.
    """
    return ADVANTAGES.get(config.advantage or "group_norm")
