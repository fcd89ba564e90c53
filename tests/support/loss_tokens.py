"""Tokens for tests of the loss: rows written as lists, of which one shorter than the others is padded off the mask."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rstar2_env.trainers.losses.tokens import Tokens

_OFF = {"mask": 0, "turn": -1, "logp": -7.0, "old": -3.0, "sampled": 0.0}


def padded(name: str, rows: Sequence[Sequence[float]], width: int) -> Tensor:
    """Rows of one field, (B, width)."""
    off = _OFF.get(name, 0)
    dtype = torch.bool if name == "mask" else torch.long if name in ("turn", "depth") else torch.float64
    return torch.tensor([[*row, *[off] * (width - len(row))] for row in rows], dtype=dtype)


def tokens(logp: Sequence[Sequence[float]], **fields: Any) -> Tokens:
    """Tokens of these rows; a field that is not given has the value that changes nothing, ``logp`` has a gradient."""
    width = max(map(len, logp))
    ones = [[1] * len(row) for row in logp]
    given = {
        "logp": logp,
        "old": logp,
        "sampled": fields.get("old", logp),
        "advantage": ones,
        "mask": ones,
        "turn": [[0] * len(row) for row in logp],
        "depth": [[0] * len(row) for row in logp],
        **fields,
    }
    made = Tokens(**{name: padded(name, rows, width) for name, rows in given.items()})
    made.logp.requires_grad_()
    return made
