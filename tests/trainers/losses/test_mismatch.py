"""Figures of the difference between engine and trainer: sums and counts, in all and by depth of tool calls."""

import math

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.diagnosis.metric_table import metric_of
from rstar2_env.trainers.losses.mismatch import mismatch, summary

RATIOS = [0.5, 2.0, 1.0, 4.0, 1.0]
DEPTH = [0, 0, 1, 3, 7]


def batch(ratios=RATIOS, depth=DEPTH, mask=None):
    logs = [math.log(ratio) for ratio in ratios]
    return tokens([logs], sampled=[[0.0] * len(ratios)], depth=[depth], mask=[mask or [1] * len(ratios)])


def added(*pieces):
    """Sums and counts of micro-batches added up, as plain numbers."""
    total = {}
    for made, weights in pieces:
        figures = mismatch(made, torch.tensor([weights], dtype=torch.float64))
        for name, (value, count) in figures.items():
            before = total.get(name, (0.0, 0.0))
            total[name] = (before[0] + value.item(), before[1] + count.item())
    return total


def test_golden():
    figures = summary(added((batch(), [0.5, 2.0, 1.0, 0.0, 1.0])))
    assert figures["mismatch/logp_difference"] == pytest.approx(4 * math.log(2) / 5)
    assert figures["mismatch/kl"] == pytest.approx((0.5 - 1 + math.log(2) + 1 - math.log(2) + 3 - math.log(4)) / 5)
    assert figures["mismatch/chi2"] == pytest.approx((0.25 + 4 + 1 + 16 + 1) / 5 - 1)
    assert figures["mismatch/masked"] == pytest.approx(0.2)
    assert figures["mismatch/weight"] == pytest.approx(0.9)
    assert figures["mismatch/ess"] == pytest.approx(4.5**2 / (5 * 6.25))


def test_by_depth():
    figures = summary(added((batch(), [0.5, 2.0, 1.0, 0.0, 1.0])))
    assert figures["mismatch/ess/depth_0"] == pytest.approx(2.5**2 / (2 * 4.25))
    assert figures["mismatch/ess/depth_1"] == 1
    assert figures["mismatch/masked/depth_3_or_more"] == 0.5
    assert not [name for name in figures if name.endswith("depth_2")], "nobody observed that depth"


def test_the_divergence_is_that_of_the_engine_from_the_trainer():
    # The engine draws 1 of two tokens with 0.7 where the trainer has 0.4; ten tokens in these shares.
    made = batch([4 / 7] * 7 + [2.0] * 3, [0] * 10)
    kl = 0.7 * math.log(7 / 4) + 0.3 * math.log(0.3 / 0.6)
    assert summary(added((made, [1.0] * 10)))["mismatch/kl"] == pytest.approx(kl)


def test_micro_batches_add_up():
    whole = added((batch(), [0.5, 2.0, 1.0, 0.0, 1.0]))
    halves = added((batch(RATIOS[:2], DEPTH[:2]), [0.5, 2.0]), (batch(RATIOS[2:], DEPTH[2:]), [1.0, 0.0, 1.0]))
    assert summary(halves) == pytest.approx(summary(whole))


def test_tokens_of_the_environment_are_in_no_figure():
    without = added((batch([2.0], [0]), [1.0]))
    assert added((batch([2.0, 8.0], [0, 1], [1, 0]), [1.0, 0.0])) == without


def test_everything_masked_has_no_effective_sample():
    assert summary(added((batch(), [0.0] * 5)))["mismatch/ess"] == 0


def test_other_figures_are_means():
    assert summary({"clip/low": (1.0, 4.0), "unseen": (0.0, 0.0)}) == {"clip/low": 0.25}


def test_every_figure_is_in_the_table_of_metrics():
    figures = summary(added((batch(), [0.5, 2.0, 1.0, 0.0, 1.0])))
    assert len(figures) > 6
    assert [name for name in figures if metric_of(name) is None] == []
