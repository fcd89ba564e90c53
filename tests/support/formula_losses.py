"""Losses of this package's parts on random numbers, for comparisons with the code of other frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from rstar2_env.core.options.declare import call_with_options
from rstar2_env.core.options.parts import read_part
from rstar2_env.trainers.losses.base import AGGREGATIONS, CORRECTIONS, LOSSES, is_corrected
from rstar2_env.trainers.losses.tokens import Tokens
from rstar2_env.trainers.ranks import ONE

LENGTHS = (5, 2, 7, 4, 1, 6)
LONGEST = 16


class Numbers(NamedTuple):
    """Log-probabilities under the policy, its older weights, the engine and a reference; mask, and advantages."""

    logp: torch.Tensor
    old: torch.Tensor
    sampled: torch.Tensor
    reference: torch.Tensor
    mask: torch.Tensor
    advantage: torch.Tensor


def made(registry: Any, written: str) -> Any:
    """A part of a registry, from its name with options."""
    part = read_part(written, registry.kind)
    return call_with_options(part.name, registry.get(part.name), part.options)


def numbers(seed: int) -> Numbers:
    """Random numbers for rows of ``LENGTHS``."""
    rng = np.random.default_rng(seed)
    shape = (len(LENGTHS), max(LENGTHS))
    logp = torch.tensor(-rng.exponential(1.0, shape) - 0.01)
    beside = [logp + torch.tensor(rng.normal(0, width, shape)) for width in (0.3, 0.9, 0.5)]
    mask = torch.arange(shape[1])[None] < torch.tensor(LENGTHS)[:, None]
    return Numbers(logp, *beside, mask, torch.tensor(rng.normal(0, 1, len(LENGTHS))))


def loss_of(terms: Sequence[str], aggregation: str, correction: str, given: Numbers) -> torch.Tensor:
    """The loss of parts, as the reference backend adds it up."""
    mask, logp = given.mask, given.logp
    zeros = torch.zeros(mask.shape, dtype=torch.long)
    tokens = Tokens(
        logp=logp,
        old=given.old,
        sampled=given.sampled,
        advantage=given.advantage[:, None].expand(mask.shape),
        mask=mask,
        turn=zeros.masked_fill(~mask, -1),
        depth=zeros.masked_fill(~mask, -1),
        reference=given.reference,
    )
    groups = np.zeros(len(LENGTHS), dtype=np.int64)
    weights = torch.tensor(made(AGGREGATIONS, aggregation)(np.array(LENGTHS), groups, ONE))
    corrected = made(CORRECTIONS, correction)(tokens)
    total = logp.sum() * 0
    for term in (made(LOSSES, written) for written in terms):
        each = term(tokens) * corrected if is_corrected(term) else term(tokens)
        total = total + (weights[:, None] * each.masked_fill(~mask, 0.0)).sum()
    return total
