"""``vespo``: the values of its weight, and what the weight is about."""

import math

import pytest
from loss_tokens import tokens

from rstar2_env.trainers.losses.vespo import Vespo


def weight(ratio, advantage, **options):
    """The weight of a row of two tokens whose ratios multiply to this."""
    half = math.log(ratio) / 2
    batch = tokens([[half, half]], sampled=[[0.0, 0.0]], advantage=[[advantage] * 2])
    Vespo(**options)(batch).sum().backward()
    return (-batch.logp.grad[0] / advantage).tolist()


@pytest.mark.parametrize(
    ("advantage", "expected"),
    [(3.0, [1.120422, 1, 0.199148]), (-3.0, [0.339785, 1, 1.082682])],
)
def test_golden(advantage, expected):
    for ratio, value in zip((0.5, 1, 2), expected, strict=True):
        assert weight(ratio, advantage) == pytest.approx([value] * 2, abs=1e-6)


def test_a_row_that_is_far_away_fades_to_nothing_and_stays_finite():
    assert weight(1e9, 1.0) == weight(1e9, -1.0) == [0.0, 0.0]
    assert weight(1e-9, 1.0) == pytest.approx([0.0, 0.0], abs=1e-12)
    batch = tokens([[900.0]], sampled=[[0.0]])
    assert Vespo()(batch).item() == 0
    assert Vespo(k_positive=0.0, decay_positive=0.0)(batch).item() == -900


def test_the_weight_has_no_gradient_and_the_engine_is_what_it_is_about():
    batch = tokens([[-1.0, -2.0]], old=[[-9.0, -9.0]], sampled=[[-1.0, -2.0]])
    loss = Vespo()(batch)
    assert loss.tolist() == [[1.0, 2.0]]
    assert (Vespo.needs, Vespo.corrected) == (frozenset(), False)


def test_each_turn_can_have_its_own_weight():
    batch = tokens([[math.log(2), 0.0]], sampled=[[0.0, 0.0]], turn=[[0, 1]])
    Vespo(level="turn")(batch).sum().backward()
    assert (-batch.logp.grad[0]).tolist() == pytest.approx([0.199148, 1], abs=1e-6)


def test_it_logs_the_mean_weight():
    total, count = Vespo().figures(tokens([[math.log(2), 0.0]], sampled=[[0.0, 0.0]], mask=[[1, 0]]))["vespo/weight"]
    assert (total.item(), count.item()) == (pytest.approx(0.199148, abs=1e-6), 1)
