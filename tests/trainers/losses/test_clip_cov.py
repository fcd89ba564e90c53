"""``clip_cov``: which tokens are left out, whatever draws and divides them."""

import math

import numpy as np
import pytest
from loss_tokens import tokens
from token_batches_of import batch_of, column

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.losses.base import LOSSES
from rstar2_env.trainers.losses.clip_cov import ClipCov
from rstar2_env.trainers.ranks import ONE

LOGP = [-0.1, -3.0, -0.1, -3.0]
"""Of two rows with the advantages 1 and -1: means -1.55 and 0, so products 1.45, -1.45, -1.45 and 1.45."""


def rows(**more):
    return [{"logp": LOGP[:2], "advantage": 1.0, "group": 4, **more}, {"logp": LOGP[2:], "advantage": -1.0, "group": 7}]


def left_out(term, seed=0, **more):
    return column(term, "clip_cov", rows(**more), seed)


def test_tokens_of_a_product_between_the_bounds_are_left_out():
    assert left_out(ClipCov(share=1.0)) == [1, 0, 0, 1]
    assert left_out(ClipCov(share=1.0, least=1.5)) == left_out(ClipCov(share=1.0, most=1.4)) == [0, 0, 0, 0]
    assert left_out(ClipCov(share=1.0, least=-2.0, most=0.0)) == [0, 1, 1, 0]


def test_the_share_is_of_all_tokens_and_at_least_one():
    for share, count in ((2e-4, 1), (0.25, 1), (0.49, 1), (0.5, 2), (0.0, 1)):
        assert sum(left_out(ClipCov(share=share))) == count


def test_a_token_that_the_surrogate_clips_is_not_among_them():
    above = [LOGP[0] - math.log(1.21), LOGP[1]]
    assert left_out(ClipCov(share=1.0), old=above) == [0, 0, 0, 1]
    assert left_out(ClipCov(share=1.0, high=0.22), old=above) == [1, 0, 0, 1]


def test_the_draw_is_its_own_and_changes_with_the_generator():
    found = {tuple(left_out(ClipCov(), seed)) for seed in range(20)}
    assert found == {(1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)}
    np.random.seed(0)
    assert left_out(ClipCov(), 3) == left_out(ClipCov(), 3)


def test_the_draw_does_not_depend_on_which_process_has_which_group():
    term, rng = ClipCov(share=0.4, least=-9.0, most=9.0), np.random.default_rng(5)
    every = [
        {"logp": rng.normal(-1, 1, 5).tolist(), "advantage": float(rng.normal()), "group": group}
        for group in (2, 2, 3, 9, 9, 9)
    ]
    (whole,) = in_processes(1, lambda ranks: term.prepare(batch_of(every), ranks, np.random.default_rng(1))["clip_cov"])
    for shares in ([every[3:], every[:3]], [[], every[2:3], every[:2], every[3:]]):
        found = in_processes(
            len(shares),
            lambda ranks, shares=shares: term.prepare(batch_of(shares[ranks.rank]), ranks, np.random.default_rng(1)),
        )
        own = {id(one): values for one, values in zip(every, whole.reshape(6, 5), strict=True)}
        for share, columns in zip(shares, found, strict=True):
            expected = [own[id(one)] for one in share]
            assert columns["clip_cov"].tolist() == np.concatenate([np.zeros(0), *expected]).tolist()
    assert whole.sum() == 12


def test_what_is_left_out_has_neither_loss_nor_gradient_and_is_logged():
    batch = tokens([LOGP], old=[[value - 0.5 for value in LOGP]], advantage=[[-1.0] * 4], mask=[[1, 1, 1, 0]])
    batch.columns = {"clip_cov": batch.advantage.new_tensor([[0, 1, 0, 1]])}
    loss = ClipCov()(batch)
    loss[batch.mask].sum().backward()
    assert loss[0, :3].tolist() == pytest.approx([math.exp(0.5), 0, math.exp(0.5)])
    assert batch.logp.grad[0].tolist() == pytest.approx([math.exp(0.5), 0, math.exp(0.5), 0])
    assert tuple(value.item() for value in ClipCov().figures(batch)["clip/dropped"]) == (1, 3)


def test_a_batch_without_tokens_leaves_out_none():
    assert ClipCov().prepare(batch_of([]), ONE, np.random.default_rng(0))["clip_cov"].shape == (0,)


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(ConfigurationError, match="`least` of clip_cov must be less than `most`"):
        make_part(LOSSES, "clip_cov:least=5,most=1")
