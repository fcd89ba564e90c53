"""``RunState``: the state of a run that hooks can read and change, independent of the backend and of torch.

Changes of limits and temperature take effect at the next rollout, so the updates on a rollout use the temperature at
which it was sampled; other changes take effect immediately. All changes are saved in checkpoints. Every method must be
called identically on every process of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from rstar2_env.core.episode import Message
from rstar2_env.core.options.declare import check_options, option

ChatMessages: TypeAlias = Sequence[Message | Mapping[str, str]]
"""Messages with ``role`` and ``content``, the system message first if there is one."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits of the episodes that are trained on; evaluation uses the limits in the run's options.

    Attributes:
        max_episode_tokens: Maximum number of tokens of an episode after its prompt.
        max_turn_tokens: Maximum number of tokens of one turn; ``None`` allows the rest of the episode's budget.
        env_options: Options of the environment that override the run's own, such as ``{"max_turns": 8}``.
    """

    max_episode_tokens: int = option(4096, least=1)
    max_turn_tokens: int | None = option(None, least=1)
    env_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that every limit is positive.

        Raises:
            ConfigurationError: A limit is not a positive integer.
        """
        check_options(self, "Budgets.")


class RunState(Protocol):
    """The interface through which hooks read and change a run.

    Attributes:
        limits: Limits of the episodes from the next rollout on; to change them, assign a changed copy
            (``dataclasses.replace(run.limits, ...)``).
        temperature: Sampling temperature of the episodes from the next rollout on, and of the updates on them.
    """

    limits: Budgets
    temperature: float

    def check_limits(self, limits: Budgets) -> None:
        """Check that episodes can be played with the given limits.

        Raises:
            ConfigurationError: The environment does not accept ``limits.env_options``, or an episode of
                ``limits.max_episode_tokens`` tokens does not fit the engine.
        """
        ...

    @property
    def step(self) -> int:
        """Number of finished optimizer steps."""

    @property
    def steps(self) -> int:
        """Number of optimizer steps of the whole run."""

    @property
    def between_rollouts(self) -> bool:
        """Whether all updates on the last rollout are done, so that the next step begins with a new rollout."""

    @property
    def figures(self) -> Mapping[str, float]:
        """The latest logged value of each metric, equal on every process; empty before the first log."""

    @property
    def openings(self) -> Mapping[str, str]:
        """The text around the problem in a prompt (system message and turn markers), by split, "train" and "eval".

        The mapping is empty if the texts are unknown.
        """

    @property
    def evaluates(self) -> bool:
        """Whether the run plays evaluations between its steps (``eval.every``)."""
        ...

    @property
    def has_reference(self) -> bool:
        """Whether the loss compares the policy with a reference model."""

    def coefficient(self, term: str = "kl") -> float:
        """Return the coefficient ``coef`` of a loss term; a second term with the same name is called ``NAME#2``.

        Raises:
            ConfigurationError: The loss does not have this term, or the term has no coefficient.
        """

    def set_coefficient(self, value: float, term: str = "kl") -> None:
        """Set the coefficient ``coef`` of a term of the loss.

        Args:
            value: The coefficient; finite and at least 0.
            term: Name of the term, as in ``coefficient``.

        Raises:
            ConfigurationError: See ``coefficient``; also if the value is out of range.
        """

    def reset_reference(self) -> None:
        """Make the reference model a copy of the current policy.

        Raises:
            ConfigurationError: The run has no reference model.
        """

    def reset_optimizer(self) -> None:
        """Reset the optimizer's moments. The learning rate schedule continues."""

    def note(self, text: str) -> None:
        """Record a text as a warning in the log and as an event ``note`` in the run's folder."""

    def sft_step(self, conversations: Sequence[ChatMessages], *, learning_rate: float | None = None) -> float:
        """Take one optimizer step on given conversations; the loss is the mean of -log p over the policy's tokens.

        Args:
            conversations: The conversations, equal on every process; the processes share the work.
            learning_rate: Learning rate of this step; ``None`` uses the schedule's.

        Returns:
            The loss before the step, in nats per token.

        Raises:
            ConfigurationError: There are no conversations, or none has a turn of the policy.
        """
