"""``Tokens``: what a loss sees of a micro-batch, one entry a completion token; built by a backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rstar2_env.core.errors import ConfigurationError

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_LOG = 20.0
"""Bound of a log-ratio before it is exponentiated, on both sides, so that no token makes a loss infinite."""
Level = Literal["token", "turn", "sequence"]
"""What a ratio belongs to: each token, all tokens of a turn together, or all tokens of a row together."""
Anchor = Literal["old", "sampled"]
"""What the policy is compared with: itself when it sampled, as the trainer computes it or as the engine did."""


@dataclass(slots=True)
class Tokens:
    """The completion tokens of B rows, the longest of which has T; tensors are (B, T), with any number off the mask.

    Attributes:
        logp: Log-probability of each token under the weights that are trained, at the sampling temperature; has a
            gradient.
        old: The same under the weights that the optimizer had when the rows were sampled, without a gradient; the
            value of ``logp`` in the first update on them.
        sampled: The engine's log-probability of each token when it drew it, without a gradient.
        advantage: Advantage of each token.
        mask: True where the policy chose the token; only these are in the loss.
        turn: Number of the policy's turn, long; -1 where the policy did not choose the token.
        depth: Number of tool calls before the token, long.
        entropy: Entropy of the distribution from which each token was drawn, in nats, with a gradient; ``None`` where
            no term needs it.
        reference: Log-probability under the reference model, without a gradient; ``None`` where no term needs it.
        teacher: Log-probability under a teacher, without a gradient; ``None`` where no term needs it.
        columns: Further numbers of the rows, by name.
    """

    logp: Tensor
    old: Tensor
    sampled: Tensor
    advantage: Tensor
    mask: Tensor
    turn: Tensor
    depth: Tensor
    entropy: Tensor | None = None
    reference: Tensor | None = None
    teacher: Tensor | None = None
    columns: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def log_ratio(self) -> Tensor:
        """Logarithm of the probability of each token now over that under ``old``; 0 off the mask."""
        return self.log_ratio_to("old")

    def log_ratio_to(self, anchor: Anchor) -> Tensor:
        """Logarithm of the probability of each token now over that under ``old`` or ``sampled``; 0 off the mask."""
        return (self.logp - (self.old if anchor == "old" else self.sampled)).masked_fill(~self.mask, 0.0)

    @property
    def log_mismatch(self) -> Tensor:
        """Logarithm of the trainer's probability over the engine's under the same weights; 0 off the mask."""
        return (self.old - self.sampled).masked_fill(~self.mask, 0.0)

    def column(self, name: str) -> Tensor:
        """One of ``columns``; zeros where the micro-batch has no token of the policy's.

        Raises:
            ConfigurationError: The rows have no such column.
        """
        if name in self.columns:
            return self.columns[name]
        if self.mask.any():
            raise ConfigurationError(
                f"The loss needs the column {name!r}, and the rows have {', '.join(sorted(self.columns)) or 'none'}. A "
                "term's own columns come from its prepare, which a backend calls for the whole optimizer batch."
            )
        return self.logp.detach() * 0

    def pooled(self, values: Tensor, level: Level, reduce: Literal["mean", "sum"] = "mean") -> Tensor:
        """Values averaged or summed over each token, turn or sequence, and given back to every token of it.

        Args:
            values: (B, T).
            level: What is taken together. Only tokens of the mask count.
            reduce: Whether to divide by the number of tokens taken together.

        Returns:
            (B, T), 0 off the mask.
        """
        values = values.masked_fill(~self.mask, 0.0)
        if level == "token":
            return values
        if level == "sequence":
            total, count = values.sum(-1, keepdim=True), self.mask.sum(-1, keepdim=True)
            pooled = (total / count.clamp(min=1) if reduce == "mean" else total).expand_as(values)
        elif level == "turn":
            place = self.turn.clamp(min=-1) + 1
            turns = (len(values), int(place.max()) + 1 if place.numel() else 1)
            total = values.new_zeros(turns).scatter_add(1, place, values)
            if reduce == "mean":
                total = total / values.new_zeros(turns).scatter_add(1, place, self.mask.to(values.dtype)).clamp(min=1)
            pooled = total.gather(1, place)
        else:
            raise ConfigurationError(f"Expected the level token, turn or sequence, got {level!r}.", option="level")
        return pooled.masked_fill(~self.mask, 0.0)


def bounded_exp(log_ratio: Tensor) -> Tensor:
    """The ratio of a log-ratio that is first bounded by ``LARGEST_LOG``, beyond which it has no gradient."""
    return log_ratio.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
