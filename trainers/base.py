"""Trainers, their results, and recipes. A recipe is a named algorithm: a choice of parts and defaults.

A recipe is plain data and does not import torch; ``api.make`` creates a trainer from it.
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rstar2_env.core import trust
from rstar2_env.core.episode_metrics import FIGURES
from rstar2_env.core.extras import needs_torch
from rstar2_env.core.files.config_file import naming_files
from rstar2_env.core.options.declare import call_with_options, nested_options, read_loosely
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.targets import options_of
from rstar2_env.core.options.user_code import Shape
from rstar2_env.core.text import html_table, text_table
from rstar2_env.env.named import find_env
from rstar2_env.env.options import env_options

from .options.config import DEFAULT_ENV, GROUPS, PartOptions, TrainConfig, missing_model
from .options.layers import each_part, over_groups, read_slot
from .options.names import full_name, in_groups
from .options.parts import make_parts, typed_part
from .record.verdict import RunVerdict, outcome

if TYPE_CHECKING:
    from rstar2_env.evaluation.figures.plot import Plot


@dataclass(frozen=True, slots=True, repr=False)
class TrainResult:
    """The result of a training run; ``str()`` gives a table of its metrics.

    Attributes:
        output_dir: The run's folder.
        model_dir: Folder of the best weights by held-out evaluation; without evaluation, of the last weights.
        before: Held-out metrics before the first step; ``None`` without evaluation.
        after: Held-out metrics of the last evaluation; ``None`` without evaluation.
        best_step: Step of the best weights, which are in ``model_dir``; 0 for the initial weights, ``None`` for a run
            without evaluation, whose best step is unknown.
        history: Logged metrics, one dict per step.
        verdict: Number of groups and steps that the run trained on, its result, and suggested commands; also in
            ``verdict.json``.
    """

    output_dir: Path
    model_dir: Path
    before: Mapping[str, float] | None
    after: Mapping[str, float] | None
    best_step: int | None
    history: list[dict[str, float]]
    verdict: RunVerdict | None = None

    @property
    def outcome(self) -> str:
        """Sentence that states the result of the run on held-out problems."""
        return outcome(self.before, self.after, self.best_step)

    def plot(self) -> Plot:
        """Plot pass rate and tool errors over the steps; a notebook shows the picture, ``save`` writes it.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from .record.plot import draw_runs

        return draw_runs({self.output_dir.name: self.history})

    def __str__(self) -> str:
        """The metrics before and after training, and of the first and the last step, as a table."""
        return "\n".join([text_table(self._title, [_HEADINGS, *self._rows()]), *self._ending])

    def __repr__(self) -> str:
        """The folders and the number of steps, without the history."""
        return (
            f"TrainResult(output_dir={str(self.output_dir)!r}, model_dir={str(self.model_dir)!r}, "
            f"steps={len(self._steps)}, best_step={self.best_step})"
        )

    def _repr_html_(self) -> str:
        ending = "".join(f"<p>{html.escape(line)}</p>" for line in self._ending)
        return html_table(self._title, self._rows(), headings=_HEADINGS) + ending

    @property
    def _title(self) -> str:
        steps = len(self._steps)
        return f"{self.output_dir}: {steps} step{'' if steps == 1 else 's'}"

    @property
    def _ending(self) -> tuple[str, ...]:
        words = (self.outcome,) if self.verdict is None else self.verdict.sentences
        return *words, f"The weights are in {self.model_dir}."

    @property
    def _steps(self) -> list[Mapping[str, float]]:
        return [line for line in self.history if any(name.startswith("rollout/") for name in line)]

    def _rows(self) -> list[tuple[str, ...]]:
        """Return a table row for each metric that has a value."""
        steps = self._steps
        first, last = (steps[0], steps[-1]) if steps else ({}, {})
        rows = []
        for name, figure in FIGURES.items():
            values = [(self.before or {}).get(name), (self.after or {}).get(name)]
            values += [step.get(f"rollout/{name}") for step in (first, last)]
            if figure.label and any(value is not None and not math.isnan(value) for value in values):
                rows.append((figure.label, *(_cell(value, percent=figure.percent) for value in values)))
        return rows


_HEADINGS = ("", "held out, before", "held out, after", "first step", "last step")


def _cell(value: float | None, *, percent: bool) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{100 * value:.1f} %" if percent else f"{value:.3g}"


class Trainer(Protocol):
    """Protocol of trainers, which learn from an environment through ``reset`` and ``step``."""

    config: TrainConfig

    def train(self) -> TrainResult:
        """Run all steps, with evaluations and checkpoints as configured."""

    def evaluate(self) -> dict[str, float]:
        """Play the held-out episodes with the current weights; return the metrics."""

    def close(self) -> None:
        """Close the environments and the engine."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named algorithm: one part with options for each slot, and defaults of the run.

    A part is written in any form of ``rstar2_env.core.options.parts``: ``"roc:mode=rank"``, ``["roc", {"mode":
    "rank"}]``, a table, or the class or function itself. ``reward``, ``loss`` and ``hook`` are lists of parts.

    Attributes:
        name: The recipe's name in the registry.
        summary: One line for the list of trainers.
        paper: Publication of the algorithm ("arXiv 2402.03300").
        source: Text or code that the recipe was compared with: a section of the paper, or repository, commit and file.
        checked: Date of this comparison ("2026-11-24").
        rollout: Plays the groups of episodes.
        reward: Components of an episode's reward.
        selector: Chooses the episodes of a group to train on.
        advantage: Estimates how much better than expected an episode is.
        loss: Terms of the loss.
        aggregation: Averages the loss over the tokens of the optimizer's batch.
        correction: Weights that correct for differences between the engine's and the trainer's probabilities.
        sampler: Chooses the problems of a step.
        hook: Callbacks, in addition to the default callbacks of ``PartOptions``.
        defaults: Options of the run that the algorithm prescribes, in groups (``{"rollout": {"oversample": 2}}``); they
            override ``TrainConfig``'s defaults. Options of the environment are dropped if the caller names another
            environment.
    """

    name: str
    summary: str = ""
    paper: str = ""
    source: str = ""
    checked: str = ""
    rollout: PartSpec = "plain"
    reward: Sequence[PartSpec] = ("return",)
    selector: PartSpec = "all"
    advantage: PartSpec = "group_norm"
    loss: Sequence[PartSpec] = ("ppo_clip",)
    aggregation: PartSpec = "token_mean"
    correction: PartSpec = "auto"
    sampler: PartSpec = "uniform"
    hook: Sequence[PartSpec] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def configure(self, *layers: Mapping[str, Any]) -> TrainConfig:
        """Build a run's options from the recipe's options and the caller's layers; later layers override earlier ones.

        Args:
            *layers: Options by their full or short names; see ``names.in_groups``.

        Raises:
            ConfigurationError: An option is unknown, missing or out of its range.
            UnknownNameError: A part with one of the given names does not exist.
        """
        with naming_files(layers, full_name):
            return self._configured(layers)

    def _configured(self, layers: Sequence[Mapping[str, Any]]) -> TrainConfig:
        slots = {slot: getattr(self, slot) for slot in options_of(PartOptions).parameters}
        slots["hook"] = [*PartOptions().hook, *self.hook]
        trust.own([slots, self.defaults])  # a recipe is code
        parts = {slot: read_slot(slot, written) for slot, written in slots.items()}
        groups: dict[str, Any] = {"parts": parts}
        own, *others = (in_groups(layer) for layer in (self.defaults, *layers))
        env = own.get("rollout", {}).get("env", DEFAULT_ENV)
        if any(layer.get("rollout", {}).get("env", env) != env for layer in others):
            # These options belong to the recipe's environment, which the caller has replaced.
            own = {
                group: {name: value for name, value in options.items() if name != "env_options"}
                for group, options in own.items()
            }
        for layer in (own, *others):
            groups = over_groups(groups, layer)
        config = make_config(groups)
        make_parts(config, shares_weights=True)  # created once to check that they can be
        return config


def make_config(groups: Mapping[str, Mapping[str, Any]]) -> TrainConfig:
    """Build the options of a run from one mapping of options per group.

    Raises:
        ConfigurationError: A value is out of its range (the message has the option's full name), or ``model`` is
            missing.
        UnknownNameError: A part, environment or wrapper with one of the given names does not exist.
    """
    given = {group: dict(groups.get(group, {})) for group in GROUPS}
    if given["model"].get("path") is None:
        raise missing_model()
    rollout, evaluation = given["rollout"], given["eval"]
    env = read_loosely(rollout.get("env", DEFAULT_ENV))
    for options, prefix in ((rollout, "rollout."), (evaluation, "eval.")):
        if "env_options" in options:
            name = f"{prefix}env_options"
            options["env_options"] = env_options(env, nested_options(name, options["env_options"]), prefix=f"{name}.")
    evaluation["env_options"] = {**_held_out(env), **evaluation.get("env_options", {})}
    given["parts"] = each_part(given["parts"], typed_part)
    made = {
        group: call_with_options(f"group {group!r}", record, given[group], prefix=f"{group}.")
        for group, record in GROUPS.items()
    }
    return TrainConfig(**made)


def _held_out(env: Any) -> dict[str, Any]:
    """Return options that select an environment's held-out problems; empty if it has no splits."""
    creator = find_env(env).creator
    takes = options_of(creator) if creator is not None else None
    return {"split": "test"} if takes is not None and (takes.open or "split" in takes.parameters) else {}


TRAINERS: Registry[Recipe] = Registry(
    "trainer",
    "rstar2_env.trainers.recipes",
    "rstar2_env.trainers",
    shape=Shape(lambda value: isinstance(value, Recipe), "a Recipe", strict=True),
    listed_by="rstar2 list trainers",
    named_alone=True,
)


@contextmanager
def needs_training_stack(what: str) -> Iterator[None]:
    """Turn a failed import of torch, transformers or TRL into an error that names the extra to install.

    The function also sets the waiting policy of torch's CPU threads, unless environment variables set it: a thread
    spins for about 0.1 ms and then sleeps. By default, threads spin for so long that other processes on the same
    processors make training several times slower.

    Args:
        what: The feature that needs the packages, as the subject of the error message.

    Raises:
        MissingExtraError: torch, transformers or TRL is not installed.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read once, when torch loads its OpenMP library
    with needs_torch(what):
        yield
