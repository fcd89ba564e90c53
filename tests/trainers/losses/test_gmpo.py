"""``gmpo``: log-ratios are clipped one by one, by the sign of the advantage, and then averaged."""

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.trainers.losses.gmpo import Gmpo

OFF = {"old": [[0.0] * 3]}


def ratio(advantage, logs=(0.1, -0.2, 0.5), **options):
    batch = tokens([list(logs)], advantage=[[advantage] * 3], **OFF)
    loss = Gmpo(**options)(batch)
    loss.mean().backward()
    return -loss[0, 0].item() / advantage, (batch.logp.grad[0] != 0).tolist()


def test_golden():
    assert ratio(1.0) == (pytest.approx(1.105171, abs=1e-6), [True, True, False])
    assert ratio(-1.0) == (pytest.approx(1.142631, abs=1e-6), [True, True, True])


def test_the_bound_is_of_the_logarithm_and_one_sided():
    assert ratio(-1.0, (0.9, -0.9, 0.0)) == (pytest.approx(torch.tensor((0.9 - 0.4) / 3).exp().item()), [1, 0, 1])
    assert ratio(1.0, (0.9, -0.9, 0.0)) == (pytest.approx(torch.tensor((0.4 - 0.9) / 3).exp().item()), [0, 1, 1])
    assert ratio(1.0, (0.9, -0.9, 0.0), high=None)[0] == pytest.approx(1.0)


def test_a_turn_has_its_own_mean():
    batch = tokens([[0.3, 0.1, 9.0, 0.2]], old=[[0.0] * 4], mask=[[1, 1, 0, 1]], turn=[[0, 0, -1, 1]])
    loss = -Gmpo(level="turn")(batch)[batch.mask]
    torch.testing.assert_close(loss, torch.tensor([0.2, 0.2, 0.2], dtype=torch.float64).exp())


def test_it_logs_what_is_clipped():
    batch = tokens([[0.9, -0.9, -0.9]], advantage=[[1.0, 1.0, -1.0]], **OFF)
    figures = {name: (int(a), int(b)) for name, (a, b) in Gmpo().figures(batch).items()}
    assert figures == {"clip/low": (1, 3), "clip/high": (1, 3)}
    assert int(Gmpo(low=None).figures(batch)["clip/low"][0]) == 0
