"""The weight of APO's KL term by difficulty."""

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.losses.apo_dads import ApoDads
from rstar2_env.trainers.losses.kl import Kl


def weight(wrong, advantage=1.0):
    """By which the term multiplies the KL term."""
    made = tokens([[-1.0]], reference=[[-1.5]], advantage=[[advantage]])
    made.columns = {"accuracy": torch.tensor([[1 - wrong]], dtype=torch.float64)}
    return (ApoDads(coef=0.1)(made) / Kl(coef=0.1)(made)).item()


@pytest.mark.parametrize(("wrong", "expected"), [(1 / 8, 0.907), (1 / 2, 0.743), (7 / 8, 0.288)])
def test_right_answers_to_hard_problems_are_held_less(wrong, expected):
    assert weight(wrong) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("wrong", [0.0, 1.0])
def test_where_all_or_none_are_right_the_weight_is_one(wrong):
    assert weight(wrong) == 1


@pytest.mark.parametrize("advantage", [0.0, -1.0])
def test_wrong_answers_are_held_as_ever(advantage):
    assert weight(7 / 8, advantage) == 1


def test_without_the_accuracy_of_its_group_it_says_what_is_missing():
    with pytest.raises(ConfigurationError, match="accuracy"):
        ApoDads()(tokens([[-1.0]], reference=[[-1.0]]))
