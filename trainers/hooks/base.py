"""What a hook is: it is called between the steps of a run, and may change what the next ones do.

A hook is any object with some of the methods of transformers' ``TrainerCallback``, each called as there, with
``(args, state, control, **kwargs)``; it need not inherit from it, and imports neither torch nor transformers. What sets
it apart is ``bind``: before training it is given the ``RunState``, through which it acts. ``on_evaluate`` is called
with the figures of each evaluation on held-out problems (``metrics={"eval/pass_rate": ...}``).

Every process of a run has its own copy of each hook, and all of them must act alike. What they see
(``RunState.figures``, ``logs``, ``metrics``) is the same on every process; a hook that draws at random seeds itself
with ``args.seed``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.options.own_code import Shape
from rstar2_env.core.options.registry import Registry

from ..samplers.base import Outcome
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
"""Methods of transformers' ``TrainerCallback``; listed here because naming hooks must not import transformers."""

Hook = object
"""An object with any of the methods ``EVENTS``, and with those of the protocols below that it needs."""


@runtime_checkable
class Binds(Protocol):
    """Optional method of a hook that acts on the run."""

    def bind(self, run: RunState) -> None:
        """Keep the run's state, and check that the run has what the hook will need.

        Raises:
            ConfigurationError: The run has no such thing, such as a reference model.
        """
        ...


@runtime_checkable
class Observes(Protocol):
    """Optional method of a hook that acts on how the groups of a rollout went."""

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Hear of the groups of all processes, once for each rollout, before the first step on it ends."""
        ...


@runtime_checkable
class KeepsState(Protocol):
    """Optional methods of a hook whose decisions depend on what it saw before; its state goes into checkpoints."""

    def state_dict(self) -> dict[str, Any]:
        """The state, as JSON can hold it."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state that ``state_dict`` returned."""
        ...


def _is_hook(value: Any) -> bool:
    return inspect.isclass(value) and any(callable(getattr(value, event, None)) for event in EVENTS)


HOOKS: Registry[Callable[..., Hook]] = Registry(
    "hook",
    "rstar2_env.trainers.hooks",
    "rstar2_env.hooks",
    shape=Shape(_is_hook, "a class with methods such as on_step_end(args, state, control, **kwargs)"),
)
