"""``topr``: what was right trains whole, what was wrong by a ratio of at most 1."""

import math

import pytest
from loss_tokens import tokens

from rstar2_env.trainers.losses.topr import Topr


def weights(ratios, advantage, **options):
    batch = tokens(
        [[math.log(ratio) for ratio in ratios]],
        old=[[0.0] * len(ratios)],
        sampled=[[0.0] * len(ratios)],
        advantage=[[advantage] * len(ratios)],
        turn=[[0, 0, 1][: len(ratios)]],
    )
    Topr(**options)(batch).sum().backward()
    return (-batch.logp.grad[0] / advantage).tolist()


def test_right_answers_train_as_in_supervised_training():
    assert weights([0.01, 5.0, 1.0], 2.0) == [1, 1, 1]


def test_wrong_answers_are_tapered_by_the_product_over_the_row():
    assert weights([0.5, 0.4, 0.9], -2.0) == pytest.approx([0.18] * 3)
    assert weights([5.0, 0.5, 2.0], -2.0) == [1, 1, 1]


def test_the_ratio_can_be_of_a_turn_or_a_token():
    assert weights([0.5, 0.4, 0.9], -1.0, level="turn") == pytest.approx([0.2, 0.2, 0.9])
    assert weights([0.5, 4.0, 0.9], -1.0, level="token", anchor="old") == pytest.approx([0.5, 1, 0.9])


def test_it_logs_the_weight_of_wrong_answers():
    batch = tokens([[math.log(0.5)], [math.log(0.5)]], sampled=[[0.0], [0.0]], advantage=[[1.0], [-1.0]])
    total, count = Topr().figures(batch)["topr/negative_weight"]
    assert (total.item(), count.item()) == (pytest.approx(0.5), 1)


def test_against_the_engine_it_is_not_corrected():
    assert (Topr().needs, Topr().corrected) == (frozenset(), False)
    assert (Topr(anchor="old").needs, Topr(anchor="old").corrected) == (frozenset({"old"}), True)
