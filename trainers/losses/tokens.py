"""``Tokens``: the input of a loss for a micro-batch, one entry per completion token; built by a backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rstar2_env.core.errors import ConfigurationError

if TYPE_CHECKING:
    from torch import Tensor as Tensor
else:
    Tensor = "torch.Tensor"  # losses name the type in annotations, and import without torch

LARGEST_LOG = 20.0
"""Bound of the absolute log-ratio before it is exponentiated, so that no token makes a loss infinite."""
RatioLevel = Literal["token", "turn", "sequence"]
"""The level of a ratio: per token, per turn, or per row."""
RatioAnchor = Literal["old", "sampled"]
"""The denominator of a ratio: the sampling policy as computed by the trainer, or by the engine."""


@dataclass(slots=True)
class Tokens:
    """The completion tokens of B rows, padded to the T tokens of the longest row, as tensors of shape (B, T).

    Values outside the mask are arbitrary.

    Attributes:
        logp: Log-probability of each token under the trained weights, at the sampling temperature; with a gradient.
        old: Log-probability of each token under the trainer's weights when the rows were sampled, without a gradient;
            the value of ``logp`` in the first update on the rows.
        sampled: The engine's log-probability of each token when it was sampled, without a gradient.
        advantage: Advantage of each token.
        mask: True for tokens sampled from the policy; only these tokens are in the loss.
        turn: Index of the policy's turn that the token is in, from 0 (int64); -1 for tokens that the policy did not
            sample.
        depth: Number of tool calls in the turns before each policy token (int64); -1 on other tokens.
        entropy: Entropy of the distribution from which each token was sampled, in nats, with a gradient; ``None`` if no
            term needs it.
        reference: Log-probability under the reference model, without a gradient; ``None`` if no term needs it.
        teacher: Log-probability under a teacher, without a gradient; ``None`` if no term needs it.
        mean_logp: Mean over the vocabulary of the log-probabilities at each token, without a gradient; ``None`` if no
            term needs it.
        old_mean_logp: ``mean_logp`` under the weights of ``old``; ``None`` if no term needs ``mean_logp``.
        answered: For each environment token, the number of calls that its message answers (0 if the policy made
            none); -1 elsewhere (int64). ``None`` if no term lists ``environment`` in ``needs``. If it is set,
            ``logp`` also covers the environment's tokens.
        embedding: Mean of the last layer over the policy's tokens of each row, (B, H), with a gradient; ``None`` if no
            term needs it.
        peers: Embeddings of the other rows in each row's group under the weights of ``old``, (B, K, H), without a
            gradient; ``None`` if no term needs ``embedding``.
        relations: Relation of each peer to the row, (B, K): 1 for a positive, -1 for a negative, 0 for neither; see
            ``contrast.relations``.
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
    mean_logp: Tensor | None = None
    old_mean_logp: Tensor | None = None
    answered: Tensor | None = None
    embedding: Tensor | None = None
    peers: Tensor | None = None
    relations: Tensor | None = None
    columns: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def log_ratio(self) -> Tensor:
        """Log-ratio of each token's current probability to its probability under ``old``; 0 off the mask."""
        return self.log_ratio_to("old")

    def log_ratio_to(self, anchor: RatioAnchor) -> Tensor:
        """Log-ratio of each token's current probability to its probability under ``anchor``; 0 off the mask."""
        return (self.logp - (self.old if anchor == "old" else self.sampled)).masked_fill(~self.mask, 0.0)

    @property
    def log_mismatch(self) -> Tensor:
        """Logarithm of the trainer's probability over the engine's under the same weights; 0 off the mask.

        The value is also 0 in rows that the policy did not sample, or sampled after a prompt other than the row's:
        there, the difference does not describe the engine.
        """
        return (self.old - self.sampled).masked_fill(~self.mask | self.off_policy, 0.0)

    @property
    def off_policy(self) -> Tensor:
        """True for the policy's tokens in rows with 1 in the column ``off_policy``; see ``Episode.off_policy``."""
        column = self.columns.get("off_policy")
        return self.mask & (column > 0) if column is not None else self.mask & False

    def column(self, name: str) -> Tensor:
        """Return a column by its name; zeros if the rows lack it and the micro-batch has no policy tokens.

        Raises:
            ConfigurationError: The rows have no such column.
        """
        if name in self.columns:
            return self.columns[name]
        if self.mask.any():
            raise ConfigurationError(
                f"A term of the loss reads the column {name!r}, but the rows have only the columns "
                f"{', '.join(sorted(self.columns)) or 'none'}. The method `prepare` of the term must "
                "return its columns, and the trainer must call this method for the whole optimizer batch."
            )
        return self.logp.detach() * 0

    @property
    def environment(self) -> Tensor:
        """True for the environment's tokens; only available if a term lists ``environment`` in ``needs``.

        Raises:
            ConfigurationError: No term lists ``environment`` in ``needs``.
        """
        if self.answered is None:
            raise ConfigurationError(
                "A term of the loss reads the tokens of the environment, but it does not list "
                '"environment" in `needs`: add it there.'
            )
        return self.answered >= 0

    def sum_and_count(self, values: Tensor, among: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the sum of values over some of the tokens, and the number of these tokens: one entry of ``Figures``.

        Args:
            values: Numbers or booleans, (B, T).
            among: True for the tokens to count, (B, T); ``None`` counts the policy's tokens.
        """
        counted = self.mask if among is None else among
        return values.masked_fill(~counted, 0).sum(), counted.sum()

    def following(self, values: Tensor) -> Tensor:
        """Return for each token the value at the policy's next token in the row, skipping tokens of the environment.

        Args:
            values: (B, T).

        Returns:
            (B, T), 0 at the policy's last token and off the mask.
        """
        number = self.mask.long().cumsum(-1).masked_fill(~self.mask, 0)
        rows, width = values.shape
        in_order = values.new_zeros(rows, width + 2).scatter_add(1, number, values)
        return in_order.gather(1, number + 1).masked_fill(~self.mask, 0.0)

    def pooled(self, values: Tensor, level: RatioLevel, reduce: Literal["mean", "sum"] = "mean") -> Tensor:
        """Average or sum values over each token, turn or sequence, and assign the result to each of its tokens.

        Args:
            values: (B, T).
            level: Whether to pool over a token, a turn or a sequence (the whole row). Only tokens of the mask count.
            reduce: Whether to divide by the number of pooled tokens.

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
            place = self.turn.clamp(min=0)  # tokens off the mask add nothing to any turn
            turns = (len(values), int(place.max()) + 1 if place.numel() else 1)
            total = values.new_zeros(turns).scatter_add(1, place, values)
            if reduce == "mean":
                total = total / values.new_zeros(turns).scatter_add(1, place, self.mask.to(values.dtype)).clamp(min=1)
            pooled = total.gather(1, place)
        else:
            raise ConfigurationError(
                f"The option `level` must be token, turn or sequence, not {level!r}.", option="level"
            )
        return pooled.masked_fill(~self.mask, 0.0)


def bounded_exp(log_ratio: Tensor) -> Tensor:
    """Return exp(log-ratio), with the log-ratio bounded by ``LARGEST_LOG``; the gradient outside the bound is 0."""
    return log_ratio.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
