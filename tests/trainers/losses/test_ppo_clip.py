"""The clipped surrogate: golden values, one for each way to clip, and ratios of turns and sequences."""

import math

import numpy as np
import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.aggregations import ConstLen
from rstar2_env.trainers.losses.base import LOSSES
from rstar2_env.trainers.losses.ppo_clip import PpoClip
from rstar2_env.trainers.ranks import ONE


def gain(ratio, advantage, **options):
    """The surrogate of one token, and whether it trains."""
    batch = tokens([[math.log(ratio)]], old=[[0.0]], advantage=[[advantage]])
    loss = PpoClip(**options)(batch)
    loss.sum().backward()
    return pytest.approx(-loss.item()), batch.logp.grad.item() != 0


@pytest.mark.parametrize(
    ("ratio", "advantage", "options", "value", "trains"),
    [
        (1.25, 1, {}, 1.25, True),
        (1.5, 1, {}, 1.28, False),
        (1.5, 1, {"high": 0.2}, 1.2, False),
        (0.7, -1, {}, -0.8, False),
        (0.7, 1, {}, 0.7, True),
        (1.5, -1, {}, -1.5, True),
        (5, -1, {}, -5, True),
        (5, -1, {"dual": 3}, -3, False),
        (2, -1, {"dual": 3}, -2, True),
        (5, 1, {"dual": 3}, 1.28, False),
        (5, -1, {"two_sided": 4}, -4, False),
        (3, -1, {"two_sided": 4}, -3, True),
        (5, 1, {"two_sided": 4, "high": None}, 4, False),
        (5, 1, {"high": None}, 5, True),
        (0.1, -1, {"low": None}, -0.1, True),
        (1.5, 1, {"low": None}, 1.28, False),
        (5, 0, {}, 0, False),
    ],
)
def test_the_surrogate_of_a_ratio(ratio, advantage, options, value, trains):
    assert gain(ratio, advantage, **options) == (value, trains)


OFF = {"old": [[0.0, 0.0, 0.0]], "mask": [[1, 1, 1]]}


def test_the_ratio_of_a_sequence_is_the_geometric_mean():
    loss = PpoClip(level="sequence")(tokens([[0.1, -0.2, 0.5]], **OFF))
    torch.testing.assert_close(-loss, torch.full((1, 3), 1.142631, dtype=torch.float64), rtol=1e-6, atol=0)


def test_the_ratio_of_a_turn_is_the_geometric_mean_of_the_turn():
    batch = tokens([[0.1, -0.2, 9.0, 0.2]], old=[[0.0] * 4], mask=[[1, 1, 0, 1]], turn=[[0, 0, -1, 1]])
    loss = -PpoClip(level="turn")(batch)[batch.mask]
    expected = torch.tensor([-0.05, -0.05, 0.2], dtype=torch.float64).exp()
    torch.testing.assert_close(loss, expected)


def test_the_gradient_of_a_sequence_is_shared_by_its_tokens():
    batch = tokens([[0.1, -0.2, 0.5]], **OFF)
    PpoClip(level="sequence")(batch).mean().backward()
    torch.testing.assert_close(
        batch.logp.grad, torch.full((1, 3), -1.142631 / 3, dtype=torch.float64), rtol=1e-6, atol=0
    )


def test_a_token_can_have_the_gradient_of_the_row_at_its_own_advantage():
    advantages = [[1.0, 0.0, 3.0]]
    batch = tokens([[0.1, -0.2, 0.5]], advantage=advantages, **OFF)
    term = PpoClip(level="sequence", token_gradient=True)
    loss = term(batch)
    loss.sum().backward()
    torch.testing.assert_close(-loss[0, 0].item(), 1.142631, rtol=1e-6, atol=0)
    torch.testing.assert_close(
        batch.logp.grad, -1.142631 * torch.tensor(advantages, dtype=torch.float64), rtol=1e-6, atol=0
    )


def test_with_one_advantage_a_row_both_forms_of_gspo_have_the_same_gradient():
    slopes = []
    for form in (False, True):
        batch = tokens([[0.1, -0.2, 0.5]], advantage=[[2.0] * 3], **OFF)
        PpoClip(level="sequence", token_gradient=form)(batch).mean().backward()
        slopes.append(batch.logp.grad)
    torch.testing.assert_close(*slopes)


def test_a_row_whose_weight_is_its_length_is_that_of_luspo():
    logs = [[0.1, -0.2, 0.5], [0.3]]
    batch = tokens(logs, old=[[0.0] * 3, [0.0]], advantage=[[1.0] * 3, [-1.0]])
    loss = PpoClip(level="sequence", low=None, high=None)(batch)
    weights = ConstLen(length=1)(np.array([3, 1]), np.array([0, 0]), ONE)
    found = (loss * torch.tensor(weights)[:, None])[batch.mask].sum().item()
    # The mean over rows of the length times the row's own loss.
    assert found == pytest.approx((3 * -1.142631 + math.exp(0.3)) / 2, abs=1e-6)


def test_the_first_update_is_the_plain_policy_gradient():
    for level in ("token", "turn", "sequence"):
        batch = tokens([[-1.0, -2.0]], advantage=[[2.0, 2.0]])
        PpoClip(level=level)(batch).sum().backward()
        torch.testing.assert_close(batch.logp.grad, torch.full((1, 2), -2.0, dtype=torch.float64))


def test_a_ratio_beyond_all_measure_stays_finite():
    assert math.isfinite(PpoClip(low=None, high=None)(tokens([[900.0]], old=[[0.0]])).item())


def test_clipped_shares_count_the_tokens_of_the_policy():
    ratios = [0.5, 0.5, 2.0, 2.0, 4.0, 1.0]
    batch = tokens(
        [[math.log(ratio) for ratio in ratios], [math.log(9.0)]],
        old=[[0.0] * 6, [0.0]],
        advantage=[[-1, 1, 1, -1, -1, 1], [1]],
        mask=[[1] * 6, [0]],
    )
    figures = {name: (int(total), int(count)) for name, (total, count) in PpoClip(dual=3).figures(batch).items()}
    assert figures == {"clip/low": (1, 6), "clip/high": (1, 6), "clip/outer": (1, 6)}


@pytest.mark.parametrize("wrong", ["low=2", "high=-1", "dual=1", "two_sided=0.5", "level=episode", "hihg=0.3"])
def test_an_option_out_of_its_range_is_refused(wrong):
    with pytest.raises(ConfigurationError, match=wrong.split("=")[0]):
        make_part(LOSSES, f"ppo_clip:{wrong}")


def test_the_ratio_may_be_to_the_probability_with_which_a_token_was_drawn():
    """Twice as likely now as when it was drawn, by other weights than those before the update."""
    batch = tokens([[-1.0, -1.0]], old=[[-1.0, -1.0]], sampled=[[-1.0 - math.log(2), -1.0]], advantage=[[1.0, -1.0]])
    own, plain = PpoClip(anchor="sampled"), PpoClip()
    assert own(batch).tolist()[0] == pytest.approx([-1.28, 1.0])
    assert plain(batch).tolist()[0] == pytest.approx([-1.0, 1.0])
    assert (own.needs, own.corrected) == (frozenset(), False)
    assert (plain.needs, plain.corrected) == (frozenset({"old"}), True)
