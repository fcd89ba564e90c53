"""``TrlRunState``: the state of a run on TRL that hooks read and change; see ``RunState``.

Not covered: with DeepSpeed, which runs the optimizer itself, hooks can neither reset the optimizer nor take SFT steps.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import Row
from rstar2_env.rollout import ChatCodec, Player
from rstar2_env.rollout.env_pool import EnvFactory

from ....hooks.state import Budgets, ChatMessages
from ..loss.forward import score, set_head
from ..loss.micro_batches import MicroBatch
from ..trainer import CollectorTrainer
from .lengths import check_fits

_LOG = logging.getLogger(__name__)
Settings: TypeAlias = tuple[Budgets, float]
"""Budgets of episodes, and their sampling temperature."""


class TrlRunState:
    """The state of one run, bound to its trainer and to the player of its training episodes.

    Args:
        trainer: Takes the optimizer steps.
        player: Plays the training episodes.
        chat: Tokenizes conversations as a rollout would.
        make_env: Returns a factory of the training environment, given options that override the run's own.
        terms: Names of the terms of the loss, in order.
        on_new_weights: Called when the weights have changed between two optimizer steps.
        on_note: Records a note of a hook, with the step.
        openings: See ``RunState``; called at most once.
        evaluates: See ``RunState``.
        follow: Called with the name of an option of the run, its new value, and names of slots (``reward``, ``loss``,
            ...); updates the parts in these slots that use the option.
        check_parts: Called with the name of an option of the run and a value that a hook wants to set; checks that the
            parts accept the value.
    """

    def __init__(
        self,
        trainer: CollectorTrainer,
        player: Player,
        chat: ChatCodec,
        *,
        make_env: Callable[[Mapping[str, Any]], EnvFactory],
        terms: Sequence[str],
        on_new_weights: Callable[[], None],
        on_note: Callable[[int, str], object] = lambda step, text: None,
        openings: Callable[[], Mapping[str, str]] = dict,
        evaluates: bool = False,
        follow: Callable[[str, object, Collection[str]], object] = lambda option, value, slots: None,
        check_parts: Callable[[str, object], object] = lambda option, value: None,
    ) -> None:
        self._follow, self._check_parts = follow, check_parts
        self.evaluates = evaluates
        self._trainer, self._player, self._chat = trainer, player, chat
        self._make_env, self._terms, self._on_new_weights = make_env, unique_names(terms), on_new_weights
        self._on_note, self._openings = on_note, openings
        self._figures: dict[str, float] = {}
        self._limits = Budgets(player.budget.tokens, player.budget.turn_tokens)
        self._temperature = player.sampling.temperature
        self._played = self._trained = self.wanted

    @property
    def step(self) -> int:
        """Number of finished optimizer steps; see ``RunState``."""
        return int(self._trainer.state.global_step)

    @property
    def steps(self) -> int:
        """Number of optimizer steps of the whole run; see ``RunState``."""
        return int(self._trainer.args.max_steps)

    @property
    def between_rollouts(self) -> bool:
        """Whether all updates on the last rollout are done; see ``RunState``."""
        return self._trainer.pending is None

    @property
    def figures(self) -> Mapping[str, float]:
        """The latest logged value of each metric; see ``RunState``."""
        return self._figures

    @functools.cached_property
    def openings(self) -> Mapping[str, str]:
        """The text around the problem in a prompt, for each split ("train" and "eval"); see ``RunState``."""
        return self._openings()

    @property
    def has_reference(self) -> bool:
        """Whether the loss compares the policy with a reference model; see ``RunState``."""
        return self._trainer.reference is not None

    @property
    def limits(self) -> Budgets:
        """Limits of the episodes from the next rollout on; see ``RunState``."""
        return self._limits

    @limits.setter
    def limits(self, limits: Budgets) -> None:
        self.check_limits(limits)
        self._limits = limits

    def check_limits(self, limits: Budgets) -> None:
        """Check that episodes can be played with the given limits; see ``RunState``."""
        if dict(limits.env_options) != dict(self._limits.env_options):
            # Make one environment now, so that a wrong option raises here instead of ending every later episode.
            self._make_env(limits.env_options)().close()
        check_fits(limits.max_episode_tokens, self._player.engine)
        if limits.max_episode_tokens != self._limits.max_episode_tokens:
            self._check_parts("rollout.max_episode_tokens", limits.max_episode_tokens)

    @property
    def temperature(self) -> float:
        """Sampling temperature from the next rollout on; see ``RunState``."""
        return self._temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        if not (math.isfinite(temperature) and temperature > 0):
            raise ConfigurationError(
                f"A hook set the sampling temperature to {temperature}; it must be a positive number."
            )
        self._temperature = float(temperature)

    def coefficient(self, term: str = "kl") -> float:
        """Return the coefficient of a loss term; see ``RunState``."""
        value = getattr(self._trainer.objective.terms[self._place(term)], "coef")  # noqa: B009 - no protocol has it
        return float(value)

    def set_coefficient(self, value: float, term: str = "kl") -> None:
        """Set the coefficient ``coef`` of a term of the loss; see ``RunState``."""
        if not (math.isfinite(value) and value >= 0):
            raise ConfigurationError(
                f"A hook set the coefficient of the loss term {term} to {value}; it must be at least 0."
            )
        terms = list(self._trainer.objective.terms)
        place = self._place(term)
        if getattr(type(terms[place]), "__dataclass_params__").frozen:  # noqa: B009 - of every dataclass, typed or not
            terms[place] = dataclasses.replace(terms[place], coef=float(value))  # type: ignore[type-var]  # a dataclass
            self._trainer.objective.terms = terms
        else:
            setattr(terms[place], "coef", float(value))  # noqa: B010 - a copy would lose the term's adaptive state

    def reset_reference(self) -> None:
        """Make the reference model a copy of the current policy; see ``RunState``."""
        self._trainer.reset_reference()

    def reset_optimizer(self) -> None:
        """Reset the optimizer's moments. The learning rate schedule continues; see ``RunState``."""
        self._refuse_deepspeed("reset the optimizer")
        optimizer: Any = self._trainer.optimizer
        getattr(optimizer, "optimizer", optimizer).state.clear()

    def note(self, text: str) -> None:
        """Record a text as a warning in the log and as an event ``note`` in the run's folder; see ``RunState``."""
        if not self._trainer.ranks.rank:
            _LOG.warning("Step %d: %s", self.step, text)
        self._on_note(self.step, text)

    def sft_step(self, conversations: Sequence[ChatMessages], *, learning_rate: float | None = None) -> float:
        """Take one optimizer step on conversations; the loss is the mean of -log p over the policy's tokens.

        If ``learning_rate`` is ``None``, the step uses the current rate of the schedule.
        """
        self._refuse_deepspeed("take an SFT step")
        trainer, ranks = self._trainer, self._trainer.ranks
        rows = [self._row(conversation) for conversation in conversations]
        tokens = sum(row.policy_tokens for row in rows)
        if not tokens:
            raise ConfigurationError(
                "A hook started a step of supervised training without any conversation that contains a turn "
                "of the policy: pass at least one."
            )
        if any(parameter.grad is not None for parameter in trainer.model.parameters()):
            raise ConfigurationError(
                "A hook may take a step of supervised training only between optimizer steps: take it in the hook's "
                "method on_step_end."
            )
        own = rows[ranks.rank :: ranks.size]
        trainer.model.train()
        trainer.use_head(1.0)
        try:
            batches = trainer.micro_batches(own, weights=np.full(len(own), 1 / tokens))
            loss = trainer.accumulate(trainer.model_wrapped, batches, self._nll)
        finally:
            trainer.use_head(self._trained[1])
        self._optimize(learning_rate)
        self._on_new_weights()
        return float(ranks.sum(np.array([float(loss)]))[0])

    def update_metrics(self, figures: Mapping[str, float]) -> None:
        """Keep the newest value of each metric that was logged."""
        self._figures |= figures

    @property
    def wanted(self) -> Settings:
        """Budgets and temperature that hooks have set for episodes that have not started yet."""
        return self._limits, self._temperature

    def begin_rollout(self) -> None:
        """Apply the wanted settings to the next episodes and to the updates on them."""
        self.play_with(self.wanted)
        self.train_with(self.wanted)

    def play_with(self, settings: Settings) -> None:
        """Set the budgets and the temperature with which the next episodes are played."""
        player, (limits, temperature), (before, at) = self._player, settings, self._played
        if limits != before:
            player.budget = replace(player.budget, tokens=limits.max_episode_tokens, turn_tokens=limits.max_turn_tokens)
            self._follow("rollout.max_episode_tokens", limits.max_episode_tokens, ("reward", "rollout"))
        if dict(limits.env_options) != dict(before.env_options):
            player.envs.use(self._make_env(limits.env_options))
        if temperature != at:
            player.sampling = replace(player.sampling, temperature=temperature)
        self._played = settings

    def train_with(self, settings: Settings) -> None:
        """Set, for the next updates, the budgets and the temperature with which their rows were sampled."""
        trainer, (limits, temperature) = self._trainer, settings
        if limits != self._trained[0]:
            self._follow("rollout.max_episode_tokens", limits.max_episode_tokens, ("loss", "aggregation", "correction"))
        if temperature != self._trained[1]:
            trainer.use_head(temperature)
            for frozen in (trainer.reference, trainer.teacher):
                if frozen is not None and frozen.model is not None:
                    set_head(frozen.model, temperature)
        self._trained = settings

    def state_dict(self) -> dict[str, Any]:
        """Return the settings that hooks can change, as JSON values.

        The trainer itself saves the reference model, if a hook reset it.
        """
        terms: list[Any] = list(self._trainer.objective.terms)
        return {
            "wanted": [asdict(self._limits), self._temperature],
            "applied": [asdict(self._trained[0]), self._trained[1]],
            "coefficients": {name: term.coef for name, term in zip(self._terms, terms, strict=True) if _has_coef(term)},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned.

        The budgets and the temperature in the state's entry ``applied`` belong to the last rollout. They apply at once,
        because rows of this rollout may still be trained on; the values in ``wanted`` apply from the next rollout on.
        """
        applied, wanted = ((Budgets(**limits), value) for limits, value in (state["applied"], state["wanted"]))
        self.play_with(applied)
        self.train_with(applied)
        self._limits, self._temperature = wanted
        for name, value in state["coefficients"].items():
            self.set_coefficient(value, name)

    def _place(self, term: str) -> int:
        """Return the index of the loss term named ``term``; raise an error if the term has no coefficient ``coef``."""
        terms = self._trainer.objective.terms
        having = [name for name, one in zip(self._terms, terms, strict=True) if _has_coef(one)]
        if term not in having:
            raise ConfigurationError(
                f"The loss does not have a term {term!r} with an option coef. Terms with this option: "
                f"{', '.join(having) or 'none'}."
            )
        return self._terms.index(term)

    def _row(self, conversation: ChatMessages) -> Row:
        messages = [
            one if isinstance(one, Message) else Message(str(one["role"]), str(one["content"])) for one in conversation
        ]
        ids, mask = self._chat.conversation(messages)
        start = mask.index(1)
        # A non-zero advantage marks the row as trained; its value is not used here.
        return Row(Episode(), ids[:start], ids[start:], mask[start:], [0.0] * (len(ids) - start), advantage=1.0)

    def _nll(self, model: Any, batch: MicroBatch) -> Tensor:
        logp = score(model, batch, self._trainer.autocast).logp
        return -(logp * batch.weight).sum() + logp.sum() * 0

    def _optimize(self, learning_rate: float | None) -> None:
        """Take one optimizer step on the accumulated gradients; ``None`` keeps the schedule's learning rate."""
        trainer = self._trainer
        optimizer: Any = trainer.optimizer
        if trainer.args.max_grad_norm:
            trainer.accelerator.clip_grad_norm_(trainer.model.parameters(), trainer.args.max_grad_norm)
        rates = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] if learning_rate is None else learning_rate
        try:
            optimizer.step()
        finally:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
        trainer.model.zero_grad()

    def _refuse_deepspeed(self, what: str) -> None:
        if self._trainer.is_deepspeed_enabled:
            raise ConfigurationError(f"With DeepSpeed, a hook cannot {what}: remove the hook, or use sharding='fsdp2'.")


def unique_names(names: Sequence[str]) -> list[str]:
    """Make the names of terms unique: the second term with the same name becomes ``NAME#2``."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return found


def _has_coef(term: Any) -> bool:
    """Whether a term of the loss is a record whose field ``coef`` can be replaced."""
    return dataclasses.is_dataclass(term) and any(field.name == "coef" and field.init for field in fields(term))
