"""Tokens written as their ratio and their advantage, for tests of terms at their bounds.

The last token is the environment's, with a ratio far away: it must not count.
"""

import math

import torch
from loss_tokens import tokens

from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import LOSSES

GARBAGE = (1e3, -7.0)
"""Ratio and advantage of the environment's token."""
HALF, TWO = math.log(0.5), math.log(2)


def of(*pairs, logp=None, **columns):
    """One row of tokens, each a ratio (to both ``old`` and ``sampled``) and an advantage, and the environment's."""
    every = [*pairs, GARBAGE]
    now = [math.log(ratio) for ratio, _ in every] if logp is None else [*logp, 3.0]
    before = [one - math.log(ratio) for one, (ratio, _) in zip(now, every, strict=True)]
    made = tokens(
        [now],
        old=[before],
        sampled=[before],
        advantage=[[advantage for _, advantage in every]],
        mask=[[1] * len(pairs) + [0]],
        turn=[[0] * len(pairs) + [-1]],
    )
    made.columns = {name: torch.tensor([[*values, 1.0]], dtype=torch.float64) for name, values in columns.items()}
    return made


def figure(spec, name, made):
    """Sum and count of a metric, which has no gradient."""
    total, count = make_part(LOSSES, spec).figures(made)[name]
    assert not total.requires_grad
    assert not count.requires_grad
    return float(total), int(count)


def loss(spec, made):
    """The loss of each of the policy's tokens, and its gradient by the log-probability."""
    found = make_part(LOSSES, spec)(made)
    found[made.mask].sum().backward()
    return found[made.mask].tolist(), made.logp.grad[made.mask].tolist()
