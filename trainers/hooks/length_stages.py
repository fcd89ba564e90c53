"""``length_stages``: changes the budgets of episodes in stages (AceReason-Nemotron, arXiv 2505.16400)."""

# This module is longer than most parts because it implements the stages of three papers and checks their lengths
# against each other.

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option
from rstar2_env.core.saved_attributes import SavedAttributes

from .base import HOOKS, RunHook
from .state import Budgets, RunState


@dataclass
class LengthStages(SavedAttributes, RunHook):
    """Change the budgets of tokens and turns in stages (AceReason-Nemotron, arXiv 2505.16400).

    Small budgets in the first stages make a policy concise and save time; later stages give hard problems more room.
    AceReason uses 8K, 16K, 24K and 32K tokens; rStar2-Agent (arXiv 2508.20722, section 4.3) 8K and 12K, with 15 instead
    of 10 turns and a new optimizer in its third stage (``tokens=1+1.5+1.5,turns=10+10+15,reset=3``). AgentMath (arXiv
    2512.20745) moves from 48K tokens to 72K and 96K, with 48, 72 and 96 calls, when over a tenth of the episodes are
    truncated (``tokens=1+1.5+2,turns=48+72+96,when_cut=0.1``).

    Args:
        tokens: Budget of an episode in each stage, as multiples of the run's ``max_episode_tokens`` (``1+1.5``); empty
            to keep the run's budget.
        steps: Optimizer steps of each stage except the last; one number applies to all, and empty divides the run into
            equal stages.
        when_cut: Share of truncated episodes in a step (0 to 1) above which the next stage starts; replaces
            ``steps``, so a stage ends only for this reason. An episode is truncated if it runs out of tokens or turns.
        turns: Maximum number of turns of an episode in each stage, set as the environment's option ``max_turns``; empty
            to keep the run's value.
        reset: Stages, from 1, that start with a new optimizer, and with the policy as the reference model if there is
            one.
    """

    tokens: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    steps: tuple[int, ...] = ()
    when_cut: float | None = option(None, least=0, below=1)
    turns: tuple[int, ...] = ()
    reset: tuple[int, ...] = ()

    saved: ClassVar[tuple[str, ...]] = ("_stage", "_begun")  # stages that end by steps follow from the step

    def __post_init__(self) -> None:
        """Check that the stages are consistent.

        Raises:
            ConfigurationError: The options define different numbers of stages, a number is not positive, ``reset``
                names a stage that does not exist, or ``steps`` and ``when_cut`` are both set.
        """
        super().__post_init__()
        self._stages = max(len(self.tokens), len(self.turns))
        if not self._stages or {len(self.tokens), len(self.turns)} - {0, self._stages}:
            raise ConfigurationError(
                "`tokens` and `turns` must have the same number of entries, one for each stage; got "
                f"{list(self.tokens)} and {list(self.turns)}."
            )
        for name, numbers in (("tokens", self.tokens), ("turns", self.turns), ("steps", self.steps)):
            if any(number <= 0 for number in numbers):
                raise ConfigurationError(
                    f"{name} must contain only positive numbers, not {list(numbers)}.", option=name
                )
        if len(self.steps) not in (0, 1, self._stages - 1):
            raise ConfigurationError(
                f"`steps` must be one number, or one for each of the {self._stages - 1} stages before the last, not "
                f"{list(self.steps)}.",
                option="steps",
            )
        if self.steps and self.when_cut is not None:
            raise ConfigurationError(
                "Only one of the options `steps` and `when_cut` may be set, because each defines when a "
                "stage ends: omit one of them.",
                option="when_cut",
            )
        self._stage, self._begun = 1, False
        if any(not 1 <= stage <= self._stages for stage in self.reset):
            raise ConfigurationError(
                f"`reset` must contain numbers of stages from 1 to {self._stages}; got {list(self.reset)}."
            )

    def bind(self, run: RunState) -> None:
        """Store the run's state, and check that the run has everything that the hook needs; see ``Binds``.

        Raises:
            ConfigurationError: Episodes cannot be played with the budgets of a stage.
        """
        super().bind(run)
        self._base = run.limits.max_episode_tokens
        between = self._stages - 1
        each = self.steps or (max(1, run.steps // self._stages),)
        self._begins = [0, *accumulate(each * between if len(each) == 1 else each)]
        for stage in range(1, self._stages + 1):
            run.check_limits(self._limits(stage))

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Set the budgets of the stage; at the first step of a stage, apply the stage's reset."""
        run = self._run
        stage, begun = sum(begin <= run.step for begin in self._begins), run.step in self._begins[1:]
        if self.when_cut is not None:
            stage, begun, self._begun = self._stage, self._begun, False
        limits = self._limits(stage)
        if limits != run.limits:
            run.limits = limits
        if stage in self.reset and begun:
            run.reset_optimizer()
            if run.has_reference:
                run.reset_reference()

    def _limits(self, stage: int) -> Budgets:
        """Return the budgets of a stage; the first stage has the number 1."""
        limits = self._run.limits
        if self.tokens:
            limits = replace(limits, max_episode_tokens=max(1, round(self.tokens[stage - 1] * self._base)))
        if self.turns:
            limits = replace(limits, env_options={**limits.env_options, "max_turns": self.turns[stage - 1]})
        return limits

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Start the next stage if too many episodes were truncated."""
        cut = [(logs or {}).get(f"rollout/end/{end}", 0.0) for end in ("tokens", "turns")]
        if self.when_cut is not None and math.fsum(cut) > self.when_cut and self._stage < self._stages:
            self._stage, self._begun = self._stage + 1, True


HOOKS.register("length_stages", LengthStages)
