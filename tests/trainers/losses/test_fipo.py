"""``fipo``: the weight that a token has from what follows it."""

import math

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.trainers.losses.fipo import Fipo

FREE = {"below": 1.0, "above": 99.0, "low": None, "high": None, "safety": None, "dual": None}


def weights(logs, advantage=1.0, **options):
    """The weight of each token, from its loss; nothing is clipped."""
    given = {**FREE, **options}
    masked = [[int(log is not None) for log in logs]]
    batch = tokens(
        [[9.0 if log is None else log for log in logs]],
        old=[[0.0] * len(logs)],
        advantage=[[advantage] * len(logs)],
        mask=masked,
        turn=[[0 if log is not None else -1 for log in logs]],
    )
    loss = Fipo(**given)(batch)
    return (-loss / advantage / batch.logp.exp())[batch.mask].tolist()


def test_golden():
    expected = [1.048853, 1.039275, 1.019109, 1.051271]
    assert weights([0.01, 0.02, -0.03, 0.05]) == pytest.approx(expected, abs=1e-6)


def test_half_of_a_tokens_part_is_gone_after_the_half_life():
    assert weights([0.0, 0.0, 0.4], half_life=2.0)[0] == pytest.approx(math.exp(0.2))
    assert weights([math.log(2), math.log(0.5)], half_life=1.0) == pytest.approx([2**0.5, 0.5])


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 65])
def test_the_sum_reaches_the_end_of_any_row(length):
    logs = torch.linspace(-0.1, 0.2, length).tolist()
    gamma = 2 ** (-1 / 5)
    plain = [math.exp(sum(gamma ** (k - t) * logs[k] for k in range(t, length))) for t in range(length)]
    assert weights(logs, half_life=5.0) == pytest.approx(plain)


def test_what_a_tool_answers_is_neither_in_the_sum_nor_in_the_distance():
    assert weights([0.1, None, None, 0.2], half_life=1.0) == pytest.approx(weights([0.1, 0.2], half_life=1.0))


def test_the_weight_is_bounded():
    logs = [0.0, 0.9, -0.9, -0.9]
    assert weights(logs, below=0.2, above=0.2) == pytest.approx([0.8, 0.8, 0.8, 0.8])
    assert weights([0.5, 0.5], below=0.2, above=0.3) == [pytest.approx(1.3)] * 2
    assert weights([-0.5, -0.5], below=0.0) == [1, 1]


def test_a_negative_advantage_is_not_amplified_where_the_ratio_is_high():
    logs = [math.log(5)]
    assert weights(logs, above=0.2, below=0.2) == weights(logs, -1.0, above=0.2, below=0.2) == [pytest.approx(1.2)]
    assert weights(logs, -1.0, above=0.2, below=0.2, safety=4.0) == [1]
    assert weights(logs, 1.0, above=0.2, below=0.2, safety=4.0) == [pytest.approx(1.2)]
    assert weights([math.log(5), -9.0], -1.0, half_life=9.0, below=1.0, safety=4.0)[0] == pytest.approx(0.8)


def test_a_token_of_an_extreme_ratio_is_left_out_of_the_sum():
    assert weights([0.1, math.log(11)], dual=10.0, half_life=1.0) == pytest.approx([math.exp(0.1), 1.0])


def test_in_the_first_update_it_is_the_plain_policy_gradient():
    batch = tokens([[-1.0, -2.0]], advantage=[[3.0, -1.0]])
    Fipo()(batch).sum().backward()
    assert batch.logp.grad.tolist() == [[-3.0, 1.0]]


def test_the_weight_has_no_gradient_and_the_surrogate_is_clipped():
    batch = tokens([[0.1, 0.5]], old=[[0.0, 0.0]])
    loss = Fipo(half_life=1.0, above=9.0)(batch)
    loss.sum().backward()
    assert (-loss[0]).tolist() == pytest.approx([math.exp(0.1 + 0.35), 1.28 * math.exp(0.5)])
    assert (-batch.logp.grad[0]).tolist() == pytest.approx([math.exp(0.45), 0])


def test_it_logs_the_mean_weight():
    figures = Fipo(**FREE).figures(tokens([[math.log(2), 0.0]], old=[[0.0] * 2], mask=[[1, 0]], turn=[[0, -1]]))
    assert tuple(value.item() for value in figures["fipo/weight"]) == (pytest.approx(2), 1)
    assert "clip/high" in figures
