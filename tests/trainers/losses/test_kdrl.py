"""KDRL's distillation: the gradient of the divergence itself, at wrong answers alone, with a weight that falls."""

import math

import pytest
import torch
from loss_tokens import padded, tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.losses.kdrl import Kdrl

POLICY, TEACHER = [0.7, 0.3], [0.4, 0.6]


def slope(estimator):
    """Expected gradient by the scores, over tokens that the policy drew."""
    scores = torch.tensor([math.log(p) for p in POLICY], dtype=torch.float64, requires_grad=True)
    logp = scores.log_softmax(0)
    batch = tokens([[0.0, 0.0]], teacher=[[math.log(p) for p in TEACHER]])
    batch.logp = batch.old = logp[None]
    value = (Kdrl(1.0, estimator, on="all")(batch)[0] * logp.detach().exp()).sum()
    return torch.autograd.grad(value, scores)[0]


def true_slope():
    scores = torch.tensor([math.log(p) for p in POLICY], dtype=torch.float64, requires_grad=True)
    logp = scores.log_softmax(0)
    (logp.exp() * (logp - torch.tensor(TEACHER, dtype=torch.float64).log())).sum().backward()
    return scores.grad


def test_the_gradient_of_k2_is_that_of_the_divergence_from_the_teacher_and_that_of_k3_is_not():
    torch.testing.assert_close(slope("k2"), true_slope())
    assert not torch.allclose(slope("k3"), true_slope(), rtol=0.1)
    assert Kdrl().estimator == "k2"


def test_only_wrong_answers_are_drawn_to_the_teacher():
    made = tokens([[-1.0, -2.0], [-1.0, -2.0]], teacher=[[-3.0, -2.5], [-3.0, -2.5]])
    made.columns = {"correct": padded("correct", [[1, 1], [0, 0]], 2)}
    found = Kdrl(coef=0.1)(made)
    assert found.tolist() == [[0, 0], [pytest.approx(0.1 * 2**2 / 2), pytest.approx(0.1 * 0.5**2 / 2)]]
    (slopes,) = torch.autograd.grad(found.sum(), made.logp)
    assert slopes[0].tolist() == [0, 0]
    assert slopes[1].tolist() == pytest.approx([0.2, 0.05])
    assert Kdrl(coef=0.1, on="all")(made)[0].tolist() == found[1].tolist()


def test_what_it_lacks_is_named():
    with pytest.raises(ConfigurationError, match=r"model\.teacher"):
        Kdrl()(tokens([[-1.0]]))
    with pytest.raises(ConfigurationError, match="correct"):
        Kdrl()(tokens([[-1.0]], teacher=[[-1.0]]))
