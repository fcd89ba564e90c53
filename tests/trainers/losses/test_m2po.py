"""``m2po``: how many tokens the second moment leaves out, and which."""

import math

import numpy as np
import pytest
from loss_tokens import tokens
from token_batches_of import batch_of, column

from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.losses.m2po import M2po

DELTA = [0.5, 0.1, 0.05, 0.3, 0.0]
ROW = [{"logp": DELTA, "sampled": [0.0] * 5, "old": [9.0] * 5}]


@pytest.mark.parametrize(
    ("threshold", "dropped", "rest"),
    [(0.08, [0, 0, 0, 0, 0], 0.0705), (0.04, [1, 0, 0, 0, 0], 0.02563), (0.01, [1, 0, 0, 1, 0], 0.00417)],
)
def test_golden(threshold, dropped, rest):
    assert column(M2po(threshold=threshold), "m2po", ROW) == dropped
    left = [delta**2 for delta, out in zip(DELTA, dropped, strict=True) if not out]
    assert sum(left) / len(left) == pytest.approx(rest, abs=1e-5)


def test_a_mean_on_the_threshold_is_not_below_it():
    assert column(M2po(threshold=0.25), "m2po", [{"logp": [0.5], "sampled": [0.0]}]) == [1]
    assert column(M2po(threshold=0.2500001), "m2po", [{"logp": [0.5], "sampled": [0.0]}]) == [0]


def test_equal_ones_go_together():
    row = [{"logp": [0.5, -0.5, 0.0, 0.0], "sampled": [0.0] * 4}]
    assert column(M2po(threshold=0.1), "m2po", row) == [1, 1, 0, 0]


def test_it_can_be_about_harmful_tokens_alone():
    rows = [
        {"logp": [0.5, 0.3, -0.9], "sampled": [0.0] * 3, "advantage": 1.0},
        {"logp": [0.9, -0.2, 0.0], "sampled": [0.0] * 3, "advantage": -1.0},
    ]
    assert column(M2po(threshold=0.1, of="harmful"), "m2po", rows) == [1, 0, 0, 0, 0, 0]
    assert column(M2po(threshold=0.1), "m2po", rows) == [0, 0, 1, 1, 0, 0]


def test_the_ratio_can_be_against_the_trainers_probabilities():
    row = [{"logp": DELTA, "old": [0.0] * 5, "sampled": DELTA}]
    assert column(M2po(), "m2po", row) == [0] * 5
    assert column(M2po(anchor="old"), "m2po", row) == [1, 0, 0, 0, 0]
    assert (M2po().needs, M2po().corrected) == (frozenset(), False)
    assert (M2po(anchor="old").needs, M2po(anchor="old").corrected) == (frozenset({"old"}), True)


def test_the_batch_is_that_of_all_processes():
    term, rng = M2po(), np.random.default_rng(0)
    alone = [[{"logp": [delta], "sampled": [0.0]}] for delta in DELTA]
    found = in_processes(5, lambda ranks: term.prepare(batch_of(alone[ranks.rank]), ranks, rng)["m2po"].tolist())
    assert found == [[1], [0], [0], [0], [0]]


def test_what_is_left_out_has_neither_loss_nor_gradient_and_nothing_is_clipped():
    batch = tokens([[math.log(9), math.log(3)]], sampled=[[0.0, 0.0]], advantage=[[2.0, 2.0]])
    batch.columns = {"m2po": batch.advantage.new_tensor([[1, 0]])}
    loss = M2po()(batch)
    loss.sum().backward()
    assert loss[0].tolist() == batch.logp.grad[0].tolist() == pytest.approx([0, -6])
    assert tuple(value.item() for value in M2po().figures(batch)["clip/dropped"]) == (1, 2)
