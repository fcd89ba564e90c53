"""What a ratio belongs to: a token, a turn, a sequence."""

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError

TWO = {
    "logp": [[0.1, 0.3, 9.0, 0.8, 1.0, 1.2], [0.5]],
    "mask": [[1, 1, 0, 1, 1, 1], [1]],
    "turn": [[0, 0, -1, 1, 1, 1], [0]],
}


@pytest.mark.parametrize(
    ("level", "reduce", "first"),
    [
        ("token", "mean", [0.1, 0.3, 0, 0.8, 1.0, 1.2]),
        ("token", "sum", [0.1, 0.3, 0, 0.8, 1.0, 1.2]),
        ("turn", "mean", [0.2, 0.2, 0, 1.0, 1.0, 1.0]),
        ("turn", "sum", [0.4, 0.4, 0, 3.0, 3.0, 3.0]),
        ("sequence", "mean", [0.68, 0.68, 0, 0.68, 0.68, 0.68]),
        ("sequence", "sum", [3.4, 3.4, 0, 3.4, 3.4, 3.4]),
    ],
)
def test_values_are_taken_together_over_the_tokens_of_the_policy(level, reduce, first):
    batch = tokens(**TWO)
    pooled = batch.pooled(batch.logp, level, reduce)
    torch.testing.assert_close(pooled, torch.tensor([first, [0.5, 0, 0, 0, 0, 0]], dtype=torch.float64))


def test_a_gradient_reaches_every_token_that_was_taken_together():
    batch = tokens(**TWO)
    batch.pooled(batch.logp, "turn")[0, 0].backward()
    assert batch.logp.grad.tolist() == [[0.5, 0.5, 0, 0, 0, 0], [0] * 6]


def test_what_follows_a_token_is_at_the_policys_next_one():
    batch = tokens(**TWO)
    found = batch.following(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [7.0, 8.0, 9.0, 8.0, 7.0, 6.0]]))
    assert found.tolist() == [[2, 4, 0, 5, 6, 0], [0, 0, 0, 0, 0, 0]]


def test_a_row_without_a_token_of_the_policy_is_nothing():
    batch = tokens([[1.0, 2.0]], mask=[[0, 0]], turn=[[-1, -1]])
    for level in ("token", "turn", "sequence"):
        assert batch.pooled(batch.logp, level).tolist() == [[0, 0]]


def test_infinities_off_the_mask_stay_there():
    batch = tokens([[1.0, float("inf")]], mask=[[1, 0]], turn=[[0, -1]], old=[[0.5, float("-inf")]])
    assert batch.log_ratio.tolist() == [[0.5, 0.0]]


def test_an_unknown_level_is_refused():
    batch = tokens([[1.0]])
    with pytest.raises(ConfigurationError, match="token, turn or sequence"):
        batch.pooled(batch.logp, "episode")


def test_what_the_policy_did_not_draw_after_its_rows_prompt_says_nothing_of_the_engine():
    batch = tokens([[1.0, 2.0], [1.0, 2.0]], sampled=[[0.5, 0.5], [0.5, 0.5]])
    assert batch.log_mismatch.tolist() == [[0.5, 1.5], [0.5, 1.5]]
    batch.columns = {"off_policy": torch.tensor([[1.0], [0.0]])}
    assert batch.log_mismatch.tolist() == [[0, 0], [0.5, 1.5]]
    assert batch.off_policy.tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("level", ["token", "turn", "sequence"])
def test_a_token_alone_is_its_own_mean_and_rows_without_one_have_no_gradient(level):
    batch = tokens([[0.75, 5.0], [2.0, 3.0]], mask=[[1, 0], [0, 0]], turn=[[0, -9], [-1, -1]])
    pooled = batch.pooled(batch.logp, level)
    assert pooled.tolist() == [[0.75, 0], [0, 0]]
    pooled.sum().backward()
    assert batch.logp.grad.tolist() == [[1, 0], [0, 0]]


def test_off_the_mask_nothing_differs_from_the_engine():
    batch = tokens([[1.0, 2.0]], old=[[1.0, 7.0]], sampled=[[0.5, 3.0]], mask=[[1, 0]])
    assert batch.log_mismatch.tolist() == [[0.5, 0]]


@pytest.mark.parametrize("level", ["token", "turn", "sequence"])
def test_rows_without_any_token_are_pooled_to_none(level):
    batch = tokens([[], []])
    assert batch.pooled(batch.logp, level).shape == (2, 0)


def test_infinities_off_the_mask_follow_no_token():
    batch = tokens([[1.0, 2.0, 3.0]], mask=[[1, 0, 1]])
    assert batch.following(torch.tensor([[4.0, float("inf"), 5.0]])).tolist() == [[5, 0, 0]]


def test_columns_are_found_by_name():
    batch = tokens([[1.0, 2.0]], mask=[[1, 0]])
    batch.columns = {"known": torch.tensor([[1.0, 2.0]])}
    assert batch.column("known") is batch.columns["known"]
    with pytest.raises(ConfigurationError, match=r"column 'other', but the rows have only the columns known\. "):
        batch.column("other")
    batch.mask = batch.mask & False
    assert batch.column("other").tolist() == [[0, 0]]
    assert not batch.column("other").requires_grad


def test_the_environments_tokens_are_those_that_answer_calls_or_none():
    batch = tokens([[1.0] * 3])
    with pytest.raises(ConfigurationError, match='does not list "environment"'):
        _ = batch.environment
    batch.answered = torch.tensor([[-1, 0, 2]])
    assert batch.environment.tolist() == [[False, True, True]]


def test_a_sum_and_a_count_are_over_the_policys_tokens_or_those_that_are_given():
    batch = tokens([[1.0, 2.0, 4.0]], mask=[[1, 0, 1]])
    values = torch.tensor([[1.0, 2.0, 4.0]])
    assert [float(one) for one in batch.sum_and_count(values)] == [5, 2]
    assert [float(one) for one in batch.sum_and_count(values, torch.tensor([[True, True, False]]))] == [3, 2]
    assert [float(one) for one in batch.sum_and_count(values > 1)] == [1, 2]


def test_only_the_policys_tokens_can_be_off_its_prompt():
    batch = tokens([[1.0, 2.0, 4.0]], mask=[[1, 0, 1]])
    assert batch.off_policy.tolist() == [[False] * 3]
    batch.columns = {"off_policy": torch.tensor([[1.0, 1.0, 0.0]])}
    assert batch.off_policy.tolist() == [[True, False, False]]
