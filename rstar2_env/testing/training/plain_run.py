"""``PlainRun``: a run without a model, for checks of hooks; records the changes that a hook makes, by step."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.harness import require
from rstar2_env.testing.training.examples import outcomes_of

TERMS = {"kl": 1e-3, "entropy": 1e-3}


class PlainRun:
    """Simulated run that a hook acts on. Every change is validated, and recorded in ``done`` with its step.

    Args:
        steps: Optimizer steps of the run.
        terms: Coefficients of the loss terms, by the term's name.
        reference: Whether there is a reference model.
        evaluates: Whether the run has evaluations.
    """

    def __init__(
        self, steps: int, terms: Mapping[str, float] = TERMS, *, reference: bool = True, evaluates: bool = True
    ) -> None:
        self.step, self.steps, self.has_reference, self.evaluates = 0, steps, reference, evaluates
        self.stopped = False
        self.between_rollouts = True
        self.figures: dict[str, float] = {}
        self.done: list[tuple[int, str, Any]] = []
        self._coefficients = dict(terms)
        self._temperature = 1.0
        self._limits: Any = importlib.import_module("rstar2_env.trainers.hooks.state").Budgets()

    @property
    def temperature(self) -> float:
        """The sampling temperature."""
        return self._temperature

    @temperature.setter
    def temperature(self, value: float) -> None:
        valid = isinstance(value, (int, float)) and math.isfinite(value) and value > 0
        require(valid, f"at step {self.step}, it set the temperature to {value!r}, which is not a positive number")
        self._did("temperature", value)
        self._temperature = value

    @property
    def limits(self) -> Any:
        """The limits of episodes."""
        return self._limits

    @limits.setter
    def limits(self, value: Any) -> None:
        valid = isinstance(value, type(self._limits))
        require(valid, f"at step {self.step}, it set limits to {value!r:.80}; use dataclasses.replace(run.limits, ...)")
        self._did("limits", copy.deepcopy(value))
        self._limits = value

    def check_limits(self, limits: Any) -> None:
        """Accept any limits."""

    def coefficient(self, term: str = "kl") -> float:
        """Return the coefficient of a loss term."""
        if term not in self._coefficients:
            raise ConfigurationError(f"The loss has no term {term!r} with a coefficient.")
        return self._coefficients[term]

    def set_coefficient(self, value: float, term: str = "kl") -> None:
        """Set the coefficient of a loss term."""
        self.coefficient(term)
        valid = isinstance(value, (int, float)) and math.isfinite(value) and value >= 0
        require(
            valid,
            f"at step {self.step}, it set the coefficient of {term} to {value!r}; expected a number of at least 0",
        )
        self._did(f"coefficient of {term}", value)
        self._coefficients[term] = value

    @property
    def openings(self) -> Mapping[str, str]:
        """The text around the problem in a prompt, by split ("train", "eval"); here it is the same in both splits."""
        return {"train": "system: solve. user: {question}", "eval": "system: solve. user: {question}"}

    def note(self, text: str) -> None:
        """Record a note."""
        require(bool(text.strip()), f"at step {self.step}, its note is empty; describe the action and its reason")
        self._did("note", text)

    def reset_reference(self) -> None:
        """Record a reset of the reference model."""
        require(self.has_reference, "it resets a reference model that the run does not have; check has_reference")
        self._did("reset_reference", None)

    def reset_optimizer(self) -> None:
        """Record a reset of the optimizer."""
        self._did("reset_optimizer", None)

    def sft_step(self, conversations: Sequence[Any], *, learning_rate: float | None = None) -> float:
        """Record an SFT step on the conversations; return 1.0 as its loss."""
        require(len(conversations) > 0, f"at step {self.step}, it requests an SFT step without a conversation")
        self._did("sft_step", (copy.deepcopy(list(conversations)), learning_rate))
        return 1.0

    def settings(self) -> tuple[Any, ...]:
        """Return the settings that hooks may change, and that a checkpoint must save."""
        return self._temperature, self._limits, dict(self._coefficients)

    def restore(self, settings: tuple[Any, ...]) -> None:
        """Restore the settings of a checkpoint."""
        self._temperature, self._limits, coefficients = settings
        self._coefficients = dict(coefficients)

    def events(self, hook: Any, steps: range, *, end: bool = True) -> None:
        """Call a hook as a trainer does, with simulated metrics: a KL that rises and falls, evaluations that stall.

        If the hook requests the end of the run, no further step is simulated, and ``stopped`` is true. With
        ``end=False``, ``on_train_end`` is called only if the hook requests the end.
        """
        args = SimpleNamespace(seed=0, max_steps=self.steps, output_dir="run")
        state = SimpleNamespace(global_step=self.step, max_steps=self.steps, is_world_process_zero=True)
        control = SimpleNamespace(should_training_stop=False, should_save=False, should_log=False)

        def call(event: str, **more: Any) -> None:
            state.global_step = self.step
            if (method := getattr(hook, event, None)) is not None:
                method(args, state, control, model=None, optimizer=None, **more)

        call("on_train_begin")
        for step in steps:
            self.step = step
            call("on_step_begin")
            if hasattr(hook, "observe"):
                hook.observe(outcomes_of([(1.0, 0.0), (0.0, 0.0), (1.0, 1.0)]))
            call("on_pre_optimizer_step")
            call("on_optimizer_step")
            self.step = step + 1
            call("on_step_end")
            logs = {"loss": 0.1, "kl": 0.01 * (step % 10) ** 2, "rollout/pass_rate": 0.5}
            logs |= {"rollout/end/tokens": 0.05 * (step % 5), "rollout/reward": 1.0 - 0.04 * step}
            self.figures |= logs
            call("on_log", logs=logs)
            if step % 2:
                figures = {"eval/pass_rate": min(0.6, 0.1 * step), "eval/reward": 0.5}
                self.figures |= figures
                call("on_evaluate", metrics=figures)
            call("on_save")
            if control.should_training_stop:
                self.stopped = True
                break
        if end or self.stopped:
            call("on_train_end")

    def _did(self, what: str, value: Any) -> None:
        self.done.append((self.step, what, value))
