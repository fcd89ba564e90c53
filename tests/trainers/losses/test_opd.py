"""On-policy distillation: a teacher's signal at every token, whose expectation is the reverse KL's gradient."""

import math

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.trainers.losses.opd import Opd

POLICY, TEACHER = [0.7, 0.3], [0.4, 0.6]


def test_its_gradient_is_that_of_the_divergence_from_the_teacher():
    scores = torch.tensor([math.log(p) for p in POLICY], dtype=torch.float64, requires_grad=True)
    logp = scores.log_softmax(0)
    batch = tokens([[0.0, 0.0]], teacher=[[math.log(p) for p in TEACHER]])
    batch.logp, batch.old = logp[None], logp.detach()[None]
    (found,) = torch.autograd.grad((Opd()(batch)[0] * logp.detach().exp()).sum(), scores, retain_graph=True)
    divergence = (logp.exp() * (logp - torch.tensor(TEACHER, dtype=torch.float64).log())).sum()
    torch.testing.assert_close(found, torch.autograd.grad(divergence, scores)[0])


def test_a_token_that_the_teacher_likes_more_becomes_likelier_and_no_advantage_is_asked():
    made = tokens([[-1.0, -1.0, -1.0]], teacher=[[-0.5, -1.0, -3.0]], advantage=[[0, 0, 0]])
    found = Opd()(made)
    assert found[0].tolist() == pytest.approx([-0.5, 0, 2])
    assert torch.autograd.grad(found.sum(), made.logp)[0][0].tolist() == pytest.approx([-0.5, 0, 2])


def test_the_signal_of_a_token_can_be_bounded():
    made = tokens([[-1.0, -1.0]], teacher=[[-0.9, -9.0]])
    assert Opd(bound=0.5)(made)[0].tolist() == pytest.approx([-0.1, 0.5])


def test_later_updates_weigh_by_the_ratio_and_leave_out_what_has_fallen():
    before = [[math.log(0.5), math.log(0.5)]]
    made = tokens([[math.log(0.4), math.log(0.2)]], old=before, teacher=[[math.log(0.2), math.log(0.1)]])
    assert Opd()(made)[0].tolist() == pytest.approx([0.8 * math.log(2), 0.4 * math.log(2)])
    assert Opd(drop_below=0.2)(made)[0].tolist() == pytest.approx([0.8 * math.log(2), 0])
    held = Opd(square=0.1)(made) - Opd()(made)
    assert held[0].tolist() == pytest.approx([0.1 * math.log(0.8) ** 2, 0.1 * math.log(0.4) ** 2])


def test_the_ratio_may_be_to_the_engine():
    made = tokens([[-1.0]], old=[[-1.0]], sampled=[[-1.5]], teacher=[[-2.0]])
    assert Opd(anchor="sampled")(made).item() == pytest.approx(math.exp(0.5))
