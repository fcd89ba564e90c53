"""Rows that others wrote, or the policy with help, beside its own: RL-PLUS and Critique-GRPO's shaping."""

import math

import pytest
import torch
from loss_tokens import padded, tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.losses.ppo_clip import PpoClip
from rstar2_env.trainers.losses.rl_plus import RlPlus
from rstar2_env.trainers.losses.shaped_offpolicy import ShapedOffpolicy

DRAWN = [[-0.2, -0.9, -2.0], [-1.2, -0.1, -0.4]]
OLD = [[-0.6, -0.5, -2.0], [-1.0, -0.9, -0.4]]


def external(now, old, advantage=1.0):
    """One token of an off-policy row."""
    made = tokens([[math.log(now)]], old=[[math.log(old)]], advantage=[[advantage]])
    made.columns = {"off_policy": padded("off_policy", [[1]], 1)}
    return made


def slope(term, made):
    return torch.autograd.grad(term(made).sum(), made.logp)[0].item()


@pytest.mark.parametrize(
    ("now", "old", "ratio"), [(0.1, 0.1, 0.3077), (0.5, 0.5, 0.8), (1.0, 1.0, 1.0), (0.5, 0.1, 1.5385)]
)
def test_the_ratio_of_rl_plus_is_that_of_two_policies_together(now, old, ratio):
    assert -RlPlus(gamma=0)(external(now, old)).item() == pytest.approx(ratio, abs=5e-5)
    assert -slope(RlPlus(gamma=0), external(now, old)) == pytest.approx(ratio, abs=5e-5)


def test_the_ratio_of_rl_plus_is_never_more_than_four():
    found = [-RlPlus(gamma=0)(external(1.0, old)).item() for old in (0.1, 1e-3, 1e-8)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(4, abs=1e-6)


def test_rl_plus_counts_most_what_the_policy_would_hardly_write():
    plain, shaped = (RlPlus(gamma=gamma)(external(0.36, 0.36, 2.0)).item() for gamma in (0, 0.5))
    assert shaped == pytest.approx(plain * math.sqrt(0.64))
    assert RlPlus()(external(1.0, 1.0)).item() == 0
    # The factor has no gradient of its own: the slope is that of the ratio times it.
    assert slope(RlPlus(), external(0.36, 0.36)) == pytest.approx(slope(RlPlus(gamma=0), external(0.36, 0.36)) * 0.8)


def test_rl_plus_clips_no_external_token():
    assert slope(RlPlus(gamma=0), external(0.9, 0.01)) < -3


@pytest.mark.parametrize(("now", "weight"), [(0.1, 0.25), (0.01, 0.0826), (1.0, 0.0826)])
def test_the_shaping_of_critique_grpo_weighs_tokens_of_a_probability_near_gamma_most(now, weight):
    assert slope(ShapedOffpolicy(), external(now, 0.5)) == pytest.approx(-weight, abs=1e-4)


def test_the_shaping_of_critique_grpo_is_one_half_at_gamma_and_knows_no_old_probability():
    assert ShapedOffpolicy()(external(0.1, 0.9)).item() == ShapedOffpolicy()(external(0.1, 0.2)).item()
    assert -ShapedOffpolicy()(external(0.1, 0.9)).item() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("term", "plain"),
    [
        (RlPlus(), PpoClip(low=0.2, high=0.2)),
        (RlPlus(low=None, high=None), PpoClip(low=None, high=None)),
        (ShapedOffpolicy(), PpoClip(low=None, high=None)),
    ],
    ids=["rl_plus", "rl_plus without a clip", "shaped_offpolicy"],
)
def test_the_policys_own_rows_are_those_of_grpo(term, plain):
    made = tokens(DRAWN, old=OLD, advantage=[[1.0] * 3, [-0.5] * 3])
    made.columns = {"off_policy": torch.zeros(2, 3, dtype=torch.float64)}
    torch.testing.assert_close(term(made), plain(made))
    own, other = (torch.autograd.grad(one(made).sum(), made.logp)[0] for one in (term, plain))
    torch.testing.assert_close(own, other)
    made.columns = {"off_policy": padded("off_policy", [[0] * 3, [1] * 3], 3)}
    torch.testing.assert_close(term(made)[0], plain(made)[0])
    assert not torch.allclose(term(made)[1], plain(made)[1])


@pytest.mark.parametrize("term", [RlPlus(), ShapedOffpolicy()], ids=["rl_plus", "shaped_offpolicy"])
def test_rows_that_do_not_say_whose_they_are_are_refused(term):
    with pytest.raises(ConfigurationError, match="off_policy"):
        term(tokens([[-1.0]]))
