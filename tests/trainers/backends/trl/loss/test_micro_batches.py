"""Where each number of a row ends up in the tensors of a micro-batch."""

import numpy as np
import pytest
import torch
from training_rows import few_rows, row

from rstar2_env.trainers.backends.trl.loss.micro_batches import FILLER_WIDTH, completion_values, lay_out
from rstar2_env.trainers.backends.trl.loss.prefix_tree import IGNORED


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
