"""``rollout_is``: tokens out of the bounds are dropped, on both sides and for both signs."""

import math

import pytest
from loss_tokens import tokens

from rstar2_env.trainers.losses.rollout_is import RolloutIs

RATIOS = [0.79, 0.81, 1.0, 1.19, 1.21]


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_the_weight_of_a_ratio(advantage):
    batch = tokens([[math.log(r) for r in RATIOS]], old=[[-9.0] * 5], sampled=[[0.0] * 5], advantage=[[advantage] * 5])
    RolloutIs()(batch).sum().backward()
    assert (-batch.logp.grad[0] / advantage).tolist() == pytest.approx([0, 0.81, 1, 1.19, 0])


def test_the_bounds_are_apart():
    batch = tokens([[math.log(r) for r in RATIOS]], sampled=[[0.0] * 5])
    term = RolloutIs(low=0.5, high=0.1)
    term(batch).sum().backward()
    assert (-batch.logp.grad[0]).tolist() == pytest.approx([0.79, 0.81, 1, 0, 0])
    assert tuple(map(int, term.figures(batch)["clip/dropped"])) == (2, 5)


def test_nothing_is_corrected_or_computed_anew():
    assert (RolloutIs.needs, RolloutIs.corrected) == (frozenset(), False)
