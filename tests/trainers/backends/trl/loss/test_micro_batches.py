"""Which rows are computed together, how many micro-batches each process computes, and where each number ends up."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from training_rows import few_rows, row

from rstar2_env.trainers.backends.trl.loss.micro_batches import (
    FILLER_WIDTH,
    IGNORED,
    completion_values,
    even_out,
    lay_out,
    pack,
)

lengths = st.lists(st.integers(1, 50), max_size=30)


@given(lengths, st.integers(1, 200))
def test_every_row_is_in_one_micro_batch_and_none_is_over_the_budget_but_a_long_row_alone(lengths, budget):
    batches = pack(lengths, budget)
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= budget for batch in batches)


@given(lengths, st.integers(1, 200))
def test_no_two_neighbours_would_have_fitted_into_one(lengths, budget):
    batches = pack(lengths, budget)
    for one, other in pairwise(batches):
        assert (len(one) + 1) * lengths[one[0]] > budget
        assert max(lengths[place] for place in other) <= min(lengths[place] for place in one)


@given(lengths, st.integers(1, 60))
def test_processes_are_kept_in_step_by_splitting_first_and_by_fillers_last(lengths, more):
    batches = pack(lengths, 60)
    count = len(batches) + more
    result = even_out(batches, count)
    assert len(result) == count
    assert sorted(place for batch in result for place in batch) == list(range(len(lengths)))
    assert result.count([]) == max(0, count - len(lengths))


def test_a_number_stands_where_the_model_predicts_the_token_it_belongs_to():
    rows = few_rows()
    rows[1].columns = {"gold": np.arange(23.0)}
    weights = np.arange(1.0, 6.0)
    batch = lay_out([3, 1], rows, weights=weights, old=[np.full(len(one.mask), -9.0) for one in rows])
    assert batch.ids.shape == batch.labels.shape == (2, 27)
    assert batch.mask.shape == batch.turn.shape == (2, 26)
    for place, at in enumerate([3, 1]):
        one = rows[at]
        prompt = len(one.prompt_ids)
        advantages = np.broadcast_to(one.advantage, len(one.mask))
        for number, token in enumerate(one.completion_ids):
            column = prompt + number - 1
            assert batch.ids[place, column + 1] == token
            assert batch.labels[place, column + 1] == (token if one.mask[number] else IGNORED)
            assert batch.mask[place, column] == bool(one.mask[number])
            assert batch.weight[place, column] == (weights[at] if one.mask[number] else 0)
            assert batch.advantage[place, column] == pytest.approx(advantages[number])
            assert batch.sampled[place, column] == pytest.approx(one.logprobs[number])
            assert batch.turn[place, column] == one.turn_of()[number]
            assert batch.depth[place, column] == one.depth_of()[number]
            assert batch.old[place, column] == -9
            assert batch.columns["gold"][place, column] == (number if at == 1 else 0)
        outside = np.ones(26, dtype=bool)
        outside[prompt - 1 : prompt - 1 + len(one.mask)] = False
        assert not batch.mask[place, outside].any()
        assert (batch.turn[place, outside] == -1).all()
        assert batch.attention[place].tolist() == [1] * one.tokens + [0] * (27 - one.tokens)


def test_what_was_laid_out_can_be_taken_out_again():
    rows = few_rows()
    batch = lay_out([4, 0], rows)
    found = completion_values(batch.sampled, batch, rows)
    for values, at in zip(found, [4, 0], strict=True):
        np.testing.assert_allclose(values, rows[at].logprobs, rtol=1e-6)


def test_a_filler_is_one_tiny_row_without_a_label():
    batch = lay_out([], few_rows(), weights=np.ones(5), old=[None] * 5, reference=[None] * 5, pad=7)
    assert batch.ids.tolist() == [[7] * FILLER_WIDTH]
    assert batch.computed == FILLER_WIDTH
    assert (batch.labels == IGNORED).all()
    assert not batch.mask.any()
    assert torch.equal(batch.weight, torch.zeros(1, FILLER_WIDTH - 1))


def test_a_row_without_a_prompt_is_refused():
    with pytest.raises(ValueError, match="must have a prompt"):
        lay_out([0], [row(0, 0, 5, 1.0)])
