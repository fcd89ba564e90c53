"""Corrections and the figures of the mismatch, at their bounds and far away."""

import math

import pytest
import torch
from bounded_tokens import TWO, of

from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import CORRECTIONS
from rstar2_env.trainers.losses.mismatch import mismatch, summary
from rstar2_env.trainers.losses.tokens import bounded_exp


class TestCorrections:
    def weights(self, spec, *pairs):
        """Weights where ``old`` exceeds ``sampled`` by the ratio."""
        made = of(*pairs)
        made.old = made.sampled + made.logp.detach() - made.sampled
        return make_part(CORRECTIONS, spec)(made)[made.mask].tolist()

    def test_a_ratio_at_a_bound_is_kept(self):
        pairs = [(0.5, 1), (2, 1), (0.4, 1), (2.5, 1)]
        assert self.weights("mask:low=0.5,high=2", *pairs) == pytest.approx([0.5, 2, 0, 0])
        assert self.weights("truncate:cap=2", *pairs) == pytest.approx([0.5, 2, 0.4, 2])
        for ratio, kept in ((2, 2), (0.5, 0.5), (2.1, 0), (0.4, 0)):
            assert self.weights("geometric:low=0.5,high=2", (ratio, 1)) == pytest.approx([kept])
            bounded = min(max(ratio, 0.5), 2)
            assert self.weights("geometric:low=0.5,high=2,mask=false", (ratio, 1)) == pytest.approx([bounded])

    @pytest.mark.parametrize(
        ("ratio", "advantage", "kept"), [(0.5, -1, 1), (0.49, -1, 0), (0.49, 0, 1), (0.49, 1, 1), (3, -1, 1)]
    )
    def test_a_negative_sequence_that_moved_away_is_dropped(self, ratio, advantage, kept):
        made = of((ratio, advantage))
        assert make_part(CORRECTIONS, f"opsm:delta={TWO}")(made)[made.mask].tolist() == [kept]


class TestMismatch:
    def test_the_metrics_of_every_depth(self):
        made = of((2, 1), (1, 1), (0.5, 1), (2, 1), (1, 1))
        made.old = made.logp.detach()
        made.depth = torch.tensor([[0, 1, 2, 3, 7, 0]])
        weights = torch.tensor([[2.0, 0.0, 1.0, 0.5, 1.0, 9.0]], dtype=torch.float64)
        found = {name: (float(total), int(count)) for name, (total, count) in mismatch(made, weights).items()}
        assert found["mismatch/logp_difference"] == (pytest.approx(3 * TWO), 5)
        assert found["mismatch/kl"] == (pytest.approx(2 * (1 - TWO) + 0.5 - 1 + TWO), 5)
        assert found["mismatch/chi2"] == (pytest.approx(3 + 3 + 0.25 - 1), 5)
        assert found["mismatch/masked"] == (1, 5)
        assert found["mismatch/weight/depth_3_or_more"] == (1.5, 2)
        assert found["mismatch/weight_squared/depth_0"] == (4, 1)
        assert found["mismatch/masked/depth_1"] == (1, 1)
        means = summary(found)
        assert means["mismatch/ess"] == pytest.approx((4.5 / 5) ** 2 / (6.25 / 5))
        assert means["mismatch/ess/depth_1"] == 0
        assert means["mismatch/ess/depth_3_or_more"] == pytest.approx(0.75**2 / (1.25 / 2))
        assert "mismatch/weight_squared" not in means

    @pytest.mark.parametrize("sign", [1, -1])
    def test_far_away_it_is_bounded(self, sign):
        made = of((math.exp(sign * 30), 1))
        made.old = made.logp.detach()
        found = mismatch(made, torch.ones_like(made.logp))
        assert float(found["mismatch/logp_difference"][0]) == 20
        assert float(found["mismatch/chi2"][0]) == pytest.approx(math.exp(sign * 40) - 1)

    def test_without_tokens_there_is_no_mean(self):
        assert summary({"mismatch/kl": (0.0, 0.0)}) == {}


def test_a_ratio_is_bounded_by_exp_of_20():
    found = bounded_exp(torch.tensor([30.0, -30.0, 1.0], dtype=torch.float64))
    assert found.tolist() == pytest.approx([math.exp(20), math.exp(-20), math.e])
