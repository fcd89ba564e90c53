"""Micro-batches of tokens for checks of losses. Torch is imported when a function is called."""

from __future__ import annotations

import importlib
from dataclasses import fields, replace
from typing import Any

from rstar2_env.testing.harness import require
from rstar2_env.testing.training.lookup import torch

LENGTHS = (9, 6, 1, 9)
"""Number of completion tokens in each row; they differ, so that rows are padded."""
_ROWS, _WIDTH = len(LENGTHS), max(LENGTHS)
_TOOL = ((3, 5), (2, 3), (0, 0), (4, 7))
"""Range of environment tokens in each row, end exclusive."""
NEEDS = frozenset({"old", "entropy", "reference", "teacher", "mean_logp", "environment", "embedding"})
"""Values of ``needs`` that a term or a correction may declare."""
_BY_ROW = ("embedding", "peers", "relations")
"""Names of the tensors in ``Tokens`` that have no token axis."""
_RELATIONS = ((1, -1, -1), (0, 0, 0), (1, 1, -1), (1, -1, 0))
_SIZE = 5


def token_batch(seed: int = 0, *, needs: frozenset[str] | None = None, on_policy: bool = False) -> Any:
    """Make ``Tokens`` of four rows, with padding, with environment tokens, and with positive and negative advantages.

    Args:
        seed: Seed of all random values.
        needs: Tensors to include in addition to the tensors that every term gets; ``None`` includes all.
        on_policy: Whether ``old`` equals ``logp``, as in the first update on a rollout.
    """
    tokens = importlib.import_module("rstar2_env.trainers.losses.tokens").Tokens
    draw = torch.Generator().manual_seed(seed)

    def noise(scale: float = 1.0) -> Any:
        return scale * torch.randn(_ROWS, _WIDTH, generator=draw, dtype=torch.float64)

    place = torch.arange(_WIDTH).expand(_ROWS, _WIDTH)
    lengths = torch.tensor(LENGTHS)[:, None]
    first, after = (torch.tensor([span[at] for span in _TOOL])[:, None] for at in (0, 1))
    shown = (place >= first) & (place < after)
    mask = (place < lengths) & ~shown
    turn = (place >= after).long() * (after > first).long()
    logp = (-noise().abs() - 0.1).requires_grad_()
    old = logp.detach().clone() if on_policy else logp.detach() + noise(0.1)
    given = {
        "entropy": {"entropy": (noise().abs() + 0.1).requires_grad_()},
        "reference": {"reference": logp.detach() + noise(0.3)},
        "teacher": {"teacher": logp.detach() + noise(0.3)},
        "mean_logp": {"mean_logp": noise() - 9, "old_mean_logp": noise() - 9},
        "environment": {"answered": torch.where(shown, turn + 1, -1)},
        "embedding": {
            "embedding": torch.randn(_ROWS, _SIZE, generator=draw, dtype=torch.float64).requires_grad_(),
            "peers": torch.randn(_ROWS, len(_RELATIONS[0]), _SIZE, generator=draw, dtype=torch.float64),
            "relations": torch.tensor(_RELATIONS),
        },
    }
    return tokens(
        logp=logp,
        old=old,
        sampled=old + noise(0.05),
        advantage=torch.where(torch.arange(_ROWS)[:, None] % 2 == 0, 1.0, -0.5).double().expand(_ROWS, _WIDTH).clone(),
        mask=mask,
        turn=turn.masked_fill(~mask, -1),
        depth=turn.clone(),
        **{
            name: value
            for need, fields in given.items()
            if needs is None or need in needs
            for name, value in fields.items()
        },
    )


def leaves(tokens: Any) -> list[Any]:
    """Return the tensors of a micro-batch for which gradients are computed."""
    return [value for value in (tokens.logp, tokens.entropy, tokens.embedding) if value is not None]


def spoiled(tokens: Any, counted: Any) -> Any:
    """Copy a micro-batch, and replace all values outside ``counted`` with other finite numbers.

    Args:
        tokens: The micro-batch to copy.
        counted: Mask of the tokens that the loss term uses, (B, T).
    """
    spoils = {}
    for name, value in _tensors(tokens).items():
        if name not in _BY_ROW and value.is_floating_point():
            other = torch.where(counted, value.detach(), -40.0 - 3 * value.detach().abs())
            spoils[name] = other.requires_grad_(value.requires_grad)
    if tokens.peers is not None:
        spoils["peers"] = torch.where(tokens.relations[..., None] != 0, tokens.peers, 7.0)
    depth = torch.where(tokens.mask, tokens.depth, 3)
    return changed(tokens, **spoils, depth=depth)


def changed(tokens: Any, **tensors: Any) -> Any:
    """Copy a micro-batch, with some tensors replaced."""
    return replace(tokens, **tensors)


def declared_batch(part: Any, seed: int = 0, *, on_policy: bool = False) -> Any:
    """Make a micro-batch with the tensors that every part gets, and those that a part declares in ``needs``.

    If the part does not declare ``old``, all values of ``old`` are NaN, because a trainer would not compute it.

    Args:
        part: The loss term or correction that will read the micro-batch.
        seed: Seed of all random values.
        on_policy: Whether ``old`` equals ``logp``, as in the first update on a rollout.
    """
    tokens = token_batch(seed, needs=part.needs, on_policy=on_policy)
    return tokens if "old" in part.needs else changed(tokens, old=torch.full_like(tokens.old, torch.nan))


def one_row(tokens: Any, row: int, width: int = _WIDTH) -> Any:
    """Return a micro-batch with one row of ``tokens``, cut to its first ``width`` tokens."""
    cut = {
        name: value[row : row + 1] if name in _BY_ROW else value[row : row + 1, :width]
        for name, value in _tensors(tokens).items()
    }
    columns = {name: value[row : row + 1, :width] for name, value in tokens.columns.items()}
    return changed(tokens, **cut, columns=columns)


def check_needs(part: Any) -> None:
    """Require that ``needs`` of a part is a frozenset of names in ``NEEDS``."""
    needs: Any = getattr(part, "needs", None)
    require(isinstance(needs, frozenset), f"`needs` is {needs!r}; declare a frozenset, empty if it needs nothing more")
    require(
        needs <= NEEDS,
        f"it declares the unknown needs {sorted(map(str, needs - NEEDS))}; known needs: {', '.join(sorted(NEEDS))}",
    )


def check_shape(found: Any, tokens: Any, what: str) -> None:
    """Require that a tensor from a part has one number, called ``what`` in the error, per token of the micro-batch."""
    right = isinstance(found, torch.Tensor) and found.shape == tokens.mask.shape
    shape = tuple(getattr(found, "shape", ())) or type(found).__name__
    require(right, f"it returned {shape}; return one {what} per token, {tuple(tokens.mask.shape)}")


def close(one: Any, other: Any) -> bool:
    """Return whether two tensors are equal except for rounding."""
    return bool(torch.allclose(one, other, rtol=1e-9, atol=1e-9))


def _tensors(tokens: Any) -> dict[str, Any]:
    found = {field.name: getattr(tokens, field.name) for field in fields(tokens)}
    return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}
