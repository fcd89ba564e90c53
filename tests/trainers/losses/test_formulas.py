"""Every part against the same formula written out token by token: values and gradients, on rows of many turns."""

import numpy as np
import pytest
import torch
from loss_tokens import tokens
from plain_batch_terms import HoldsSome, LeastSquares, SecondMoment, WithoutSome
from plain_loss import Divergence, LogProbability, Mean, Surrogate, Uncertainty, Weights
from plain_terms import (
    BoundedWeight,
    GeometricMean,
    Held,
    NearInProbability,
    OffPolicy,
    Reshaped,
    SoftGate,
    Tapered,
    TokenForm,
    TwoSided,
    WithItsFuture,
)

from rstar2_env.core.options.parts import make_part
from rstar2_env.testing.training.batch_of_tokens import of_tokens
from rstar2_env.trainers.losses.base import AGGREGATIONS, CORRECTIONS, LOSSES, is_corrected
from rstar2_env.trainers.ranks import ONE

LEVELS = ("token", "turn", "sequence")
TERMS = [
    *((f"ppo_clip:level={level}", Surrogate(level=level)) for level in LEVELS),
    *((f"ppo_clip:low=0.05,high=0.1,level={level}", Surrogate(0.05, 0.1, level=level)) for level in LEVELS),
    ("ppo_clip:two_sided=1.5", Surrogate(two_sided=1.5)),
    ("ppo_clip:dual=1.3", Surrogate(dual=1.3)),
    ("reinforce", LogProbability()),
    *(
        (f"kl:coef=0.3,estimator={name}", Divergence(0.3, name))
        for name in ("k1", "k2", "k3", "k3+", "unbiased", "episode")
    ),
    ("entropy:coef=0.3", Uncertainty(0.3)),
    ("cispo:high=0.3", BoundedWeight(high=0.3)),
    ("cispo:low=0.2,high=0.2,anchor=sampled", BoundedWeight(0.2, 0.2, "sampled")),
    *((f"dppo:divergence={name},low=0.05,high=0.04", NearInProbability(name, 0.05, 0.04)) for name in ("tv", "kl")),
    ("dppo:cap=1.1", NearInProbability(cap=1.1)),
    ("dppo:divergence=kl,anchor=old", NearInProbability("kl", anchor="old")),
    ("dppo:low=0.1,high=0.1,either=true", NearInProbability("tv", 0.1, 0.1, either=True)),
    *((f"dro:beta=0.7,anchor={anchor}", Held(0.7, anchor)) for anchor in ("old", "sampled")),
    ("fipo:half_life=2", WithItsFuture(2)),
    ("fipo:half_life=1.5,below=0,above=0.5,safety=1.2,dual=1.4", WithItsFuture(1.5, 0, 0.5, 1.2, dual=1.4)),
    ("fipo:below=1,above=9,safety=none,dual=none", WithItsFuture(32, 1, 9, None, dual=None)),
    *((f"gmpo:low=0.1,high=0.3,level={level}", GeometricMean(0.1, 0.3, level)) for level in LEVELS[1:]),
    *((f"ppo_clip:level={level},token_gradient=true", TokenForm(level=level)) for level in LEVELS),
    ("rollout_is:low=0.3,high=0.4", TwoSided(0.3, 0.4)),
    ("sapo", SoftGate()),
    ("sapo:positive=2,negative=0.5", SoftGate(2, 0.5)),
    *((f"topr:level={level}", Tapered(level)) for level in LEVELS),
    ("topr:anchor=old", Tapered(anchor="old")),
    *((f"vespo:level={level}", Reshaped(level=level)) for level in LEVELS[1:]),
    ("vespo:k_positive=1,decay_positive=0.5,k_negative=2,decay_negative=3", Reshaped(1, 0.5, 2, 3)),
]
OF_A_BATCH = [
    ("clip_cov:share=0.2,least=0.01", WithoutSome(0.2, 0.01)),
    ("clip_cov:least=0.1,most=0.4,high=0.28", WithoutSome(least=0.1, most=0.4, high=0.28)),
    ("gvpo:beta=0.6", LeastSquares(0.6)),
    ("kl_cov:share=0.3,coef=0.5", HoldsSome(0.3, 0.5)),
    ("kl_cov", HoldsSome()),
    ("m2po:threshold=0.2", SecondMoment(0.2)),
    ("m2po:threshold=0.1,of=harmful", SecondMoment(0.1, "harmful")),
    ("m2po:threshold=0.2,anchor=old", SecondMoment(0.2, anchor="old")),
]
CORRECTED = [
    ("none", Weights()),
    *((f"truncate:level={level},cap=1.2", Weights("truncate", level, high=1.2)) for level in LEVELS),
    *((f"mask:level={level},low=0.7,high=1.3", Weights("mask", level, 0.7, 1.3)) for level in LEVELS),
    *(
        (f"geometric:level={level},low=0.9,high=1.1", Weights("geometric", level, 0.9, 1.1))
        for level in ("turn", "sequence")
    ),
    *((f"opsm:delta=0.05,level={level}", OffPolicy(0.05, level=level)) for level in LEVELS[1:]),
    ("opsm:delta=0.1,anchor=old,then=(truncate:cap=1.1)", OffPolicy(0.1, "old", cap=1.1)),
]


def rows(seed):
    """Two rows of up to three turns with the environment's tokens between them, of unequal lengths."""
    rng = np.random.default_rng(seed)
    turns = [np.repeat(*np.array([(0, 3), (-1, 2), (1, 2), (-1, 1), (2, 3)]).T), np.repeat([-1, 0, 1], [1, 2, 2])]
    fields = {
        name: [rng.normal(-1, 0.4, len(row)).clip(max=-0.05).tolist() for row in turns]
        for name in ("logp", "old", "sampled", "reference", "entropy")
    }
    fields["advantage"] = [rng.normal(-0.2, 1, len(row)).tolist() for row in turns]
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
    assert (term.policy_gradient, is_corrected(term)) == (
        plain.policy_gradient,
        plain.policy_gradient and getattr(plain, "corrected", True),
    )
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


@pytest.mark.parametrize(("spec", "plain"), OF_A_BATCH, ids=[spec for spec, _ in OF_A_BATCH])
def test_a_term_of_the_whole_batch(spec, plain):
    term = make_part(LOSSES, spec)
    assert (term.policy_gradient, is_corrected(term)) == (
        plain.policy_gradient,
        plain.policy_gradient and getattr(plain, "corrected", True),
    )
    at_work = 0
    for seed in range(20):
        batch = tokens(**rows(seed))
        whole = of_tokens(batch)
        columns = [part.prepare(whole, ONE, np.random.default_rng(seed)) for part in (term, plain)]
        for each in columns:
            for name, values in each.items():
                each[name] = torch.zeros_like(batch.logp.detach()).masked_scatter(batch.mask, torch.tensor(values))
        batch.columns = columns[0]
        losses = term(batch)
        losses[batch.mask].sum().backward()
        for at in range(2):
            row = tokens(**{name: [values[at]] for name, values in rows(seed).items()})
            width = row.mask.shape[1]
            row.columns = {name: values[at : at + 1, :width] for name, values in columns[1].items()}
            expected = plain(row)
            expected[row.mask].sum().backward()
            torch.testing.assert_close(losses[at, :width][row.mask[0]], expected[row.mask])
            torch.testing.assert_close(batch.logp.grad[at, :width], row.logp.grad[0])
            at_work += int((row.logp.grad[row.mask] == 0).sum())
    if spec.startswith(("clip_cov", "m2po")):
        assert 20 <= at_work < 150, "some tokens are left out, and not all"


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
