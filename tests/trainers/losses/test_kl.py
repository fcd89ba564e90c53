"""Estimators of the divergence: their values, and where their gradients point, over a distribution that is known."""

import math

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.losses.kl import Kl

POLICY, REFERENCE = [0.7, 0.3], [0.4, 0.6]
SCORES = [math.log(p) for p in POLICY]


def expected(estimator, old=None):
    """Expectation of value and gradient (by the scores), when the tokens are drawn from the policy, or from ``old``."""
    scores = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True)
    logp = scores.log_softmax(0)
    drawn = logp.detach() if old is None else torch.tensor(old, dtype=torch.float64).log()
    batch = tokens([[0.0], [0.0]], reference=[[math.log(p)] for p in REFERENCE])
    batch.logp, batch.old = logp[:, None], drawn[:, None]
    value = (Kl(1.0, estimator)(batch)[:, 0] * drawn.exp()).sum()
    # The estimators are losses: a gradient flows through their value, none through the drawing of the token.
    (gradient,) = torch.autograd.grad(value, scores)
    return value.item(), gradient


def divergence(one, other):
    return sum(p * math.log(p / q) for p, q in zip(one, other, strict=True))


def gradient_of(function, scores):
    scores = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    function(scores.log_softmax(0)).backward()
    return scores.grad


LOG_REFERENCE = torch.tensor(REFERENCE, dtype=torch.float64).log()
REVERSE = gradient_of(lambda logp: (logp.exp() * (logp - LOG_REFERENCE)).sum(), SCORES)
FORWARD = gradient_of(lambda logp: (LOG_REFERENCE.exp() * (LOG_REFERENCE - logp)).sum(), SCORES)


@pytest.mark.parametrize(
    ("estimator", "value"),
    [
        ("k1", 0.183787),
        ("k2", 0.181677),
        ("k3", 0.183787),
        ("k3+", 0.183787),
        ("unbiased", 0.183787),
        ("episode", 0.183787),
    ],
)
def test_the_expected_value(estimator, value):
    assert divergence(POLICY, REFERENCE) == pytest.approx(0.183787, abs=1e-6)
    assert expected(estimator)[0] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("estimator", "gradient"),
    [
        ("k1", torch.zeros(2, dtype=torch.float64)),
        ("k2", REVERSE),
        ("k3", FORWARD),
        ("k3+", REVERSE),
        ("unbiased", REVERSE),
        ("episode", REVERSE),
    ],
    ids=str,
)
def test_the_expected_gradient(estimator, gradient):
    assert not torch.allclose(REVERSE, FORWARD, rtol=0.1)
    torch.testing.assert_close(expected(estimator)[1], gradient)


def test_only_the_unbiased_estimator_has_the_gradient_of_the_divergence_on_tokens_drawn_by_older_weights():
    older = [0.5, 0.5]
    torch.testing.assert_close(expected("unbiased", old=older)[1], REVERSE)
    for estimator in ("k1", "k2", "k3", "k3+", "episode"):
        assert not torch.allclose(expected(estimator, old=older)[1], REVERSE, rtol=0.05)


@pytest.mark.parametrize(
    ("estimator", "value"),
    [("k1", -0.5), ("k2", 0.125), ("k3", 0.148721), ("k3+", 0.148721), ("unbiased", 0.162446), ("episode", -0.5)],
)
def test_the_value_of_one_token(estimator, value):
    # d = -0.5, ratio 1.0923
    batch = tokens([[-1.5]], old=[[-1.5 - 0.088284]], reference=[[-1.0]])
    assert Kl(2.0, estimator)(batch).item() == pytest.approx(2 * value, abs=1e-5)


def test_the_gradient_of_a_token_in_an_episode_counts_the_later_tokens_of_the_policy():
    # d = 0.5, (the environment's), -0.2, 0.1: from each token on 0.4, none, -0.1, 0.1
    batch = tokens([[-1.0, -9.0, -1.2, -0.9]], reference=[[-1.5, 0.0, -1.0, -1.0]], mask=[[1, 0, 1, 1]])
    logp = batch.logp.detach().requires_grad_()
    batch.logp = logp
    value = Kl(2.0, "episode")(batch)
    assert value[0].tolist() == pytest.approx([1.0, 0.0, -0.4, 0.2])
    value.sum().backward()
    assert logp.grad[0].tolist() == pytest.approx([0.8, 0.0, -0.2, 0.2])


def test_it_logs_the_divergence_of_the_tokens_of_the_policy():
    batch = tokens([[-1.5, -1.0, 5.0]], reference=[[-1.0, -1.0, 0.0]], mask=[[1, 1, 0]])
    total, count = Kl(estimator="k1").figures(batch)["kl"]
    assert (total.item(), count.item()) == (pytest.approx(0.148721, abs=1e-6), 2)


def test_only_the_unbiased_estimator_needs_the_older_weights():
    assert Kl().needs == {"reference"}
    assert Kl(estimator="unbiased").needs == {"reference", "old"}


def test_without_a_reference_it_says_so():
    with pytest.raises(ConfigurationError, match="reference model"):
        Kl()(tokens([[0.0]]))


def test_zero_probability_under_the_policy_stays_finite():
    for estimator in ("k3", "k3+", "unbiased"):
        assert math.isfinite(Kl(1.0, estimator)(tokens([[-900.0]], reference=[[-1.0]])).item())
