"""``sapo``: the values and the gradients of its gate."""

import math

import pytest
from loss_tokens import tokens

from rstar2_env.trainers.losses.sapo import Sapo

RATIOS = [0.5, 0.8, 1.0, 1.2, 2.0]


def of(advantage, **options):
    """The gate at each ratio, and how much of the plain policy gradient is left, times the ratio."""
    batch = tokens([[math.log(ratio) for ratio in RATIOS]], old=[[0.0] * 5], advantage=[[advantage] * 5])
    loss = Sapo(**options)(batch)
    loss.sum().backward()
    return (-loss[0] / advantage).tolist(), (-batch.logp.grad[0] / advantage).tolist()


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_golden(advantage):
    gate, slope = of(advantage, negative=1.0)
    assert gate == pytest.approx([1.510163, 1.800664, 2, 2.199336, 2.924234], abs=1e-6)
    assert slope == pytest.approx([0.470, 0.792, 1, 1.188, 1.573], abs=1e-3)


def test_the_sign_of_the_advantage_chooses_how_soon_it_fades():
    left = {sign: of(sign, positive=1.0, negative=5.0)[1] for sign in (1.0, -1.0)}
    assert left[1.0] == pytest.approx([0.470, 0.792, 1, 1.188, 1.573], abs=1e-3)
    for ratio, slope in zip(RATIOS, left[-1.0], strict=True):
        p = 1 / (1 + math.exp(-5 * (ratio - 1)))
        assert slope == pytest.approx(4 * p * (1 - p) * ratio)


def test_it_logs_what_is_left_of_the_gradient():
    batch = tokens([[0.0, math.log(2), 5.0]], old=[[0.0] * 3], mask=[[1, 1, 0]])
    total, count = Sapo().figures(batch)["sapo/gate"]
    assert (total.item() / count.item(), count.item()) == (pytest.approx((1 + 1.573 / 2) / 2, abs=1e-3), 2)
