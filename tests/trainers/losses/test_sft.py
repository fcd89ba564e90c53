"""``sft``: cross-entropy of rows that are no draws of the policy, and of no others."""

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.trainers.losses.sft import SftLoss


def two_rows():
    batch = tokens([[-1.0, -2.0, -9.0], [-4.0]], mask=[[1, 1, 0], [1]])
    batch.columns = {"off_policy": torch.tensor([[1.0], [0.0]], dtype=torch.float64)}
    return batch


def test_it_is_the_coefficient_times_the_cross_entropy_of_such_rows():
    batch = two_rows()
    loss = SftLoss(coef=0.5)(batch)
    torch.testing.assert_close(loss, torch.tensor([[0.5, 1.0, 0], [0, 0, 0]], dtype=torch.float64))
    loss.sum().backward()
    assert batch.logp.grad.tolist() == [[-0.5, -0.5, 0], [0, 0, 0]]


def test_it_logs_their_mean():
    total, count = SftLoss().figures(two_rows())["sft"]
    assert float(total) / float(count) == pytest.approx(1.5)
