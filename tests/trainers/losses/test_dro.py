"""``dro``: the policy gradient and the pull of the square."""

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.trainers.losses.dro import Dro


def test_value_and_gradient():
    batch = tokens([[-1.0, -2.0]], sampled=[[-1.5, -2.0]], advantage=[[3.0, -1.0]])
    loss = Dro(beta=0.4)(batch)
    assert loss.tolist() == [[pytest.approx(3 + 0.2 * 0.25), -2.0]]
    loss.sum().backward()
    torch.testing.assert_close(batch.logp.grad, torch.tensor([[-3 + 0.4 * 0.5, 1.0]], dtype=torch.float64))


def test_what_has_moved_far_enough_is_pulled_back():
    batch = tokens([[0.0]], sampled=[[-9.0]])
    Dro(beta=0.5)(batch).sum().backward()
    assert batch.logp.grad.item() == pytest.approx(-1 + 4.5)


def test_rows_without_an_advantage_are_held_too():
    batch = tokens([[-1.0]], sampled=[[-2.0]], advantage=[[0.0]])
    assert Dro()(batch).item() == pytest.approx(0.025)
    assert not Dro.policy_gradient


def test_what_holds_it_can_be_the_trainers_probabilities():
    batch = tokens([[-1.0]], old=[[-1.0]], sampled=[[-9.0]])
    assert Dro(anchor="old")(batch).item() == 1
    assert (Dro(anchor="old").needs, Dro().needs) == (frozenset({"old"}), frozenset())
