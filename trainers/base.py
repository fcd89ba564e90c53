"""What a trainer is, and what it leaves behind; recipes by name, each of which names the parts of an algorithm.

A recipe is data, and nothing heavy is imported here: ``api.make`` turns one into a trainer.
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

from .advantages.group import ADVANTAGES, Advantage
from .config import TrainConfig, make_config
from .selectors.resample_on_correct import SELECTORS, Selector, Settles


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a run leaves behind.

    Attributes:
        output_dir: The run's folder.
        model_dir: Folder of the best checkpoint: by held-out evaluation, else the last.
        before: Held-out metrics before the first step, when the run evaluates.
        after: Held-out metrics of the last evaluation.
        best_step: Step of the best checkpoint.
        history: Logged metrics, one dict a step.
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
        """Run every step, evaluate, keep checkpoints."""
        ...

    def evaluate(self) -> dict[str, float]:
        """Play the held-out episodes with the model as it is; return the metrics."""
        ...

    def close(self) -> None:
        """Close environments and engines."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named choice of every part of a trainer.

    Attributes:
        name: Its name in the registry.
        summary: One line for the list of trainers.
        selector: Which episodes of a group train.
        selector_options: Options of the selector.
        advantage: How rewards become advantages.
        oversample: Episodes played for each that trains.
        defaults: Options of the run that the algorithm prescribes, over ``TrainConfig``'s own defaults.
    """

    name: str
    summary: str
    selector: str = "all"
    selector_options: Mapping[str, Any] = field(default_factory=dict)
    advantage: str = "group_norm"
    oversample: int = 1
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def configure(self, options: Mapping[str, Any]) -> TrainConfig:
        """The options of a run: the caller's over the recipe's over the general defaults.

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
"""Options of a run that are the options of one of its parts, which says what they are."""


def _held_out(env: Any) -> dict[str, Any]:
    """How an environment is told to give held-out problems; nothing where it has no splits."""
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
    """Word a missing torch, transformers or TRL as what it is: an extra that is not installed.

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
    """The selector that the options name.

    Raises:
        UnknownNameError: There is none of that name.
        ConfigurationError: It does not take those options, or ``early_stop`` is on and it cannot say when to stop.
    """
    name = config.selector or "all"
    selector: Selector = call_with_options(f"selector {name!r}", SELECTORS.get(name), config.selector_options)
    if config.early_stop and not isinstance(selector, Settles):
        raise ConfigurationError(
            f"early_stop needs a selector that says when a group needs no more; {name!r} has no method `settled`."
        )
    return selector


def make_advantage(config: TrainConfig) -> Advantage:
    """The advantage estimator that the options name.

    Raises:
        UnknownNameError: There is none of that name.
    """
    return ADVANTAGES.get(config.advantage or "group_norm")
