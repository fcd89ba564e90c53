"""Aggregations: golden values, and the same loss however the rows are split over processes."""

import numpy as np
import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import AGGREGATIONS
from rstar2_env.trainers.ranks import ONE

LENGTHS, LOSSES_OF = [2, 4], [1.0, 2.0]


class Ranks:
    """One of several processes whose parts are all known."""

    def __init__(self, everyone, rank):
        self.rank, self.size, self.everyone = rank, len(everyone), everyone

    def sum(self, values):
        return sum(np.array(each(values)) for each in self.everyone)

    def gather(self, value):
        return [each(value) for each in self.everyone]


def weights(spec, shards):
    """Weights of every row of every process; ``shards`` are the (lengths, groups) of each process.

    A process is run twice: first to hear what it would tell the others, then with what all have told.
    """
    aggregation = make_part(AGGREGATIONS, spec)
    told = []
    for lengths, groups in shards:
        heard = {}
        aggregation(np.array(lengths, int), np.array(groups, int), _Hearing(heard))
        told.append(heard)
    everyone = [lambda value, heard=heard: heard["value"] for heard in told]
    return [
        aggregation(np.array(lengths, int), np.array(groups, int), Ranks(everyone, rank)).tolist()
        for rank, (lengths, groups) in enumerate(shards)
    ]


class _Hearing:
    rank, size = 0, 1

    def __init__(self, heard):
        self.heard = heard

    def sum(self, values):
        self.heard["value"] = values
        return values

    def gather(self, value):
        self.heard["value"] = value
        return [value]


GOLDEN = [
    ("token_mean", [0, 1], 1.6667),
    ("seq_mean", [0, 1], 1.5),
    ("prompt_mean", [0, 1], 1.5),
    ("prompt_mean", [0, 0], 1.6667),
    ("const_len:length=1", [0, 1], 5.0),  # the sum over the tokens of a row, averaged over rows, comes to 5
    ("const_len:length=8", [0, 1], 0.625),
]


@pytest.mark.parametrize(("spec", "groups", "value"), GOLDEN)
def test_golden(spec, groups, value):
    (own,) = weights(spec, [(LENGTHS, groups)])
    loss = sum(w * n * x for w, n, x in zip(own, LENGTHS, LOSSES_OF, strict=True))
    assert loss == pytest.approx(value, abs=1e-4)


SPECS = ["token_mean", "seq_mean", "prompt_mean", "const_len:length=7"]


@pytest.mark.parametrize("spec", SPECS)
def test_the_weights_do_not_depend_on_the_processes(spec):
    lengths, groups = [2, 4, 3, 1, 5, 2], [0, 0, 1, 1, 2, 2]
    (alone,) = weights(spec, [(lengths, groups)])
    # Group 1 is on both processes.
    one, other = weights(spec, [(lengths[:3], groups[:3]), (lengths[3:], groups[3:])])
    assert one + other == pytest.approx(alone)
    everything, nothing = weights(spec, [(lengths, groups), ([], [])])
    assert (everything, nothing) == (pytest.approx(alone), [])


@pytest.mark.parametrize("spec", SPECS)
def test_a_row_without_tokens_of_the_policy_counts_as_none(spec):
    (without,) = weights(spec, [([2, 4], [0, 1])])
    assert weights(spec, [([2, 0, 4, 0], [0, 0, 1, 2])]) == [pytest.approx([without[0], 0, without[1], 0])]


@pytest.mark.parametrize("spec", SPECS)
def test_a_step_without_any_row_has_no_weights(spec):
    assert weights(spec, [([], []), ([0], [3])]) == [[], [0]]


def test_prompts_weigh_the_same_and_their_tokens_too():
    (own,) = weights("prompt_mean", [([1, 3, 5], [7, 7, 9])])
    assert own == pytest.approx([1 / 8, 1 / 8, 1 / 10])


def test_a_length_below_one_token_is_refused():
    with pytest.raises(ConfigurationError, match="length"):
        make_part(AGGREGATIONS, "const_len:length=0")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [("token_mean", 1 / 3), ("seq_mean", 1 / 3), ("prompt_mean", 1 / 3), ("const_len:length=2", 1 / 2)],
)
def test_rows_and_groups_without_tokens_do_not_count(spec, expected):
    found = make_part(AGGREGATIONS, spec)(np.array([0, 3, 0]), np.array([1, 2, 2]), ONE)
    assert found.tolist() == [0, pytest.approx(expected), 0]
    assert make_part(AGGREGATIONS, spec)(np.array([0]), np.array([1]), ONE).tolist() == [0]
