"""Every part against the same formula written out token by token: values and gradients, on rows of many turns."""

import numpy as np
import pytest
import torch
from loss_tokens import tokens
from plain_loss import Divergence, LogProbability, Mean, Surrogate, Uncertainty, Weights

from rstar2_env.core.parts import make_part
from rstar2_env.trainers.losses.base import AGGREGATIONS, CORRECTIONS, LOSSES
from rstar2_env.trainers.ranks import ONE

LEVELS = ("token", "turn", "sequence")
TERMS = [
    *((f"ppo_clip:level={level}", Surrogate(level=level)) for level in LEVELS),
    *((f"ppo_clip:low=0.05,high=0.1,level={level}", Surrogate(0.05, 0.1, level=level)) for level in LEVELS),
    ("ppo_clip:two_sided=1.5", Surrogate(two_sided=1.5)),
    ("ppo_clip:dual=1.3", Surrogate(dual=1.3)),
    ("reinforce", LogProbability()),
    *((f"kl:coef=0.3,estimator={name}", Divergence(0.3, name)) for name in ("k1", "k2", "k3", "k3+", "unbiased")),
    ("entropy:coef=0.3", Uncertainty(0.3)),
]
CORRECTED = [
    ("none", Weights()),
    *((f"truncate:level={level},cap=1.2", Weights("truncate", level, high=1.2)) for level in LEVELS),
    *((f"mask:level={level},low=0.7,high=1.3", Weights("mask", level, 0.7, 1.3)) for level in LEVELS),
    *(
        (f"geometric:level={level},low=0.9,high=1.1", Weights("geometric", level, 0.9, 1.1))
        for level in ("turn", "sequence")
    ),
]


def rows(seed):
    """Two rows of up to three turns with the environment's tokens between them, of unequal lengths."""
    rng = np.random.default_rng(seed)
    turns = [np.repeat(*np.array([(0, 3), (-1, 2), (1, 2), (-1, 1), (2, 3)]).T), np.repeat([-1, 0, 1], [1, 2, 2])]
    fields = {
        name: [rng.normal(-1, 0.4, len(row)).tolist() for row in turns]
        for name in ("logp", "old", "sampled", "reference", "entropy", "advantage")
    }
    fields["advantage"][0] = [float(rng.normal())] * len(turns[0])
    return {**fields, "turn": [row.tolist() for row in turns], "mask": [(row >= 0).tolist() for row in turns]}


def one_by_one(part, fields):
    """The plain part on each row alone, padded to the width of all."""
    made = [tokens(**{name: [values[at]] for name, values in fields.items()}) for at in range(2)]
    for row in made:
        row.entropy.requires_grad_()
    return made, [part(row) for row in made]


@pytest.mark.parametrize(("spec", "plain"), TERMS, ids=[spec for spec, _ in TERMS])
def test_a_term(spec, plain):
    term = make_part(LOSSES, spec)
    assert term.policy_gradient == plain.policy_gradient
    for seed in range(20):
        fields = rows(seed)
        batch = tokens(**fields)
        batch.entropy.requires_grad_()
        losses = term(batch)
        losses[batch.mask].sum().backward()
        for at, (row, expected) in enumerate(zip(*one_by_one(plain, fields), strict=True)):
            expected[row.mask].sum().backward()
            width = row.mask.shape[1]
            torch.testing.assert_close(losses[at, :width][row.mask[0]], expected[row.mask])
            for found, wanted in ((batch.logp, row.logp), (batch.entropy, row.entropy)):
                wanted = torch.zeros_like(wanted) if wanted.grad is None else wanted.grad
                found = torch.zeros_like(found) if found.grad is None else found.grad
                torch.testing.assert_close(found[at, :width], wanted[0])


@pytest.mark.parametrize(("spec", "plain"), CORRECTED, ids=[spec for spec, _ in CORRECTED])
def test_a_correction(spec, plain):
    changed = 0
    for seed in range(20):
        fields = rows(seed)
        batch = tokens(**fields)
        weights = make_part(CORRECTIONS, spec)(batch)
        for at, (row, expected) in enumerate(zip(*one_by_one(plain, fields), strict=True)):
            width = row.mask.shape[1]
            torch.testing.assert_close(weights[at, :width][row.mask[0]], expected[row.mask])
            changed += int((expected[row.mask] != 1).sum())
    assert (changed > 0) == (spec != "none")


@pytest.mark.parametrize("spec", ["token_mean", "seq_mean", "prompt_mean", "const_len:length=9"])
def test_an_aggregation(spec):
    plain = Mean(spec.split(":")[0], length=9)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lengths, groups = rng.integers(0, 7, 9), rng.integers(0, 4, 9)
        np.testing.assert_allclose(make_part(AGGREGATIONS, spec)(lengths, groups, ONE), plain(lengths, groups, ONE))
