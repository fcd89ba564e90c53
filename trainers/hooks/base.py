"""The protocol of hooks, which are called between the steps of a run and may change the following steps.

A hook is any object with some of the methods of transformers' ``TrainerCallback``, called with the same arguments,
``(args, state, control, **kwargs)``. A hook need not inherit from ``TrainerCallback``, and imports neither torch nor
transformers. In addition, a hook may have ``bind``: before training, this method receives the ``RunState``, through
which the hook acts. ``on_evaluate`` is called with the metrics of each evaluation on held-out problems
(``metrics={"eval/pass_rate": ...}``). Hooks count optimizer steps (``RunState.step``), whereas samplers count rollouts.

Every process of a run has its own copy of each hook, and all copies must act identically. Their inputs
(``RunState.figures``, ``logs``, ``metrics``) are equal on every process; a hook that draws random numbers seeds its
generator with ``args.seed``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape
from rstar2_env.core.run_folder import EpisodeEntry
from rstar2_env.core.run_folder.layout import Split

from ..samplers.base import GroupResult
from .state import RunState

EVENTS = (
    "on_init_end",
    "on_train_begin",
    "on_train_end",
    "on_epoch_begin",
    "on_epoch_end",
    "on_step_begin",
    "on_pre_optimizer_step",
    "on_optimizer_step",
    "on_substep_end",
    "on_step_end",
    "on_evaluate",
    "on_predict",
    "on_save",
    "on_log",
    "on_prediction_step",
    "on_push_begin",
)
"""Names of the methods of ``transformers.TrainerCallback``, repeated here so that transformers is not imported."""

Hook = object
"""An object with some of the methods in ``EVENTS``, and optionally methods of the protocols in this module."""


@runtime_checkable
class Binds(Protocol):
    """Protocol of a hook that acts on the run."""

    def bind(self, run: RunState) -> None:
        """Store the run's state, and check that the run has everything that the hook needs.

        Raises:
            ConfigurationError: The run lacks something that the hook needs, such as a reference model.
        """


@runtime_checkable
class Observes(Protocol):
    """Protocol of a hook that uses the results of a rollout's groups."""

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Receive the results of a rollout's groups from all processes, before the rollout's first step ends."""


@runtime_checkable
class ReadsEpisodes(Protocol):
    """Protocol of a hook that receives each episode when it is written to the run's folder."""

    def wrote(self, split: Split, step: int, line: int, entries: Sequence[EpisodeEntry]) -> None:
        """Receive episodes just written to the run's folder; only the hooks of the first process are called.

        Args:
            split: ``"train"`` or ``"eval"``.
            step: Training step for which the episodes were played; for an evaluation, the step after which it ran.
            line: Line number of the first of these episodes in the step's file, from 0.
            entries: The episodes; of a training step, only those that the first process played.
        """


@runtime_checkable
class KeepsState(Protocol):
    """Protocol of a hook whose decisions depend on earlier steps; its state is saved in checkpoints."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that ``state_dict`` returned."""


class RunHook(CheckedOptions):
    """Base class of hooks that act on the run: ``bind`` stores the run's state."""

    _run: RunState

    def bind(self, run: RunState) -> None:
        """Store the run's state, and check that the run has everything that the hook needs; see ``Binds``."""
        self._run = run


def _is_hook(value: Any) -> bool:
    return inspect.isclass(value) and any(callable(getattr(value, event, None)) for event in EVENTS)


HOOKS: Registry[Callable[..., Hook]] = Registry(
    "hook",
    "rstar2_env.trainers.hooks",
    "rstar2_env.hooks",
    shape=Shape(_is_hook, "a class with methods such as on_step_end(args, state, control, **kwargs)"),
)
