"""Corrections, at every level; and what they tell of the difference between engine and trainer."""

import math

import pytest
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import CORRECTIONS

RATIOS = [0.4, 1.5, None, 2.0, 3.0]
"""Of each token, trainer over engine; the third is the environment's."""


def batch(ratios=RATIOS, **fields):
    logs = [0.0 if ratio is None else math.log(ratio) for ratio in ratios]
    given = {
        "old": [logs],
        "sampled": [[0.0 if ratio else -9.0 for ratio in ratios]],
        "mask": [[int(ratio is not None) for ratio in ratios]],
        "turn": [[0, 0, -1, 1, 1][: len(ratios)]],
        **fields,
    }
    return tokens([[0.0] * len(ratios)], **given)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("none", [1, 1, 1, 1]),
        ("truncate", [0.4, 1.5, 2, 2]),
        ("truncate:cap=2.5", [0.4, 1.5, 2, 2.5]),
        ("truncate:level=turn,cap=5", [0.6, 0.6, 5, 5]),
        ("truncate:level=sequence,cap=5", [3.6, 3.6, 3.6, 3.6]),
        ("mask", [0, 1.5, 2, 3]),
        ("mask:high=2.5", [0, 1.5, 2, 0]),
        ("mask:level=turn,low=0.5,high=5", [0.6, 0.6, 0, 0]),
        ("mask:level=sequence,low=0.5,high=5", [3.6, 3.6, 3.6, 3.6]),
        ("mask:level=sequence,high=3", [0, 0, 0, 0]),
        ("geometric:level=turn,low=0.7,high=2", [0.6**0.5, 0.6**0.5, 0, 0]),
        ("geometric:level=turn,low=0.7,high=2,mask=false", [0.6**0.5, 0.6**0.5, 2, 2]),
        ("geometric:level=turn,low=0.8,high=3,mask=false", [0.8, 0.8, 6**0.5, 6**0.5]),
        ("geometric:low=0.5,high=2", [3.6**0.25] * 4),
        ("geometric", [0, 0, 0, 0]),
    ],
)
def test_weights(spec, expected):
    made = batch()
    weights = make_part(CORRECTIONS, spec)(made)
    assert not weights.requires_grad
    assert weights[made.mask].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("spec", ["truncate:level=turn", "mask:level=sequence", "geometric:level=turn,mask=false"])
def test_where_engine_and_trainer_agree_every_weight_is_one(spec):
    assert make_part(CORRECTIONS, spec)(batch([1.0, 1.0, None, 1.0])).tolist() == [[1, 1, 1, 1]]


def test_what_compares_needs_the_trainers_probabilities_under_the_older_weights():
    needs = {name: make_part(CORRECTIONS, name).needs for name in CORRECTIONS}
    assert needs == {"none": set(), "truncate": {"old"}, "mask": {"old"}, "geometric": {"old"}, "opsm": set()}


@pytest.mark.parametrize("wrong", ["truncate:cap=0.5", "mask:low=1.5", "mask:high=0.9", "geometric:level=token"])
def test_bounds_that_leave_out_one_are_refused(wrong):
    with pytest.raises(ConfigurationError):
        make_part(CORRECTIONS, wrong)
