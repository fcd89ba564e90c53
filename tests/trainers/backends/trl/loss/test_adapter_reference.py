"""The model that a policy of adapters is compared with: the one the run began with, its cold start included."""

import contextlib

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_models import tiny_qwen3

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.trainers.backends.trl.loss.forward import ReferenceModel, score, set_head
from rstar2_env.trainers.backends.trl.loss.micro_batches import lay_out

ROWS = [
    Row(Episode(), [5, 9], [8, 31, 4, 22], [1, 1, 0, 1], [0.0] * 4),
    Row(Episode(), [7], [44, 3], [1, 1], [0.0] * 2),
]
BATCH = lay_out([0, 1], ROWS)


def policy(*, cold_start):
    """A policy of adapters: those of a cold start, or new ones."""
    base = tiny_qwen3()
    set_head(base, 1.0, ())
    torch.manual_seed(1)
    return get_peft_model(
        base, LoraConfig(r=2, lora_alpha=4, target_modules="all-linear", init_lora_weights=not cold_start)
    )


def computed(model):
    with torch.no_grad():
        return score(model, BATCH, contextlib.nullcontext).logp


def train(model):
    with torch.no_grad():
        for weights in model.parameters():
            if weights.requires_grad:
                weights.add_(torch.randn_like(weights) * 0.1)


@pytest.mark.parametrize("cold_start", [False, True])
def test_it_is_the_policy_at_the_start_and_leaves_the_trained_one_alone(cold_start):
    model = policy(cold_start=cold_start)
    start = computed(model)
    reference = ReferenceModel(model, torch.float32, 1.0)
    train(model)
    trained = computed(model)
    assert not torch.allclose(trained, start, atol=1e-2)
    found = reference.score(model, BATCH, contextlib.nullcontext)
    assert torch.equal(found, start)
    assert torch.equal(computed(model), trained)
    with model.disable_adapter():
        assert torch.allclose(computed(model), start, atol=1e-2) is not cold_start


def test_a_reset_makes_it_the_policy_of_now():
    model = policy(cold_start=False)
    reference = ReferenceModel(model, torch.float32, 1.0)
    train(model)
    now = computed(model)
    reference.reset(model)
    train(model)
    assert torch.equal(reference.score(model, BATCH, contextlib.nullcontext), now)


def test_a_resumed_run_compares_with_what_the_first_one_did():
    model = policy(cold_start=True)
    first = ReferenceModel(model, torch.float32, 1.0)
    train(model)
    first.reset(model)
    expected = computed(model)
    again = policy(cold_start=True)
    resumed = ReferenceModel(again, torch.float32, 1.0)
    resumed.load_state_dict(first.state_dict())
    assert torch.equal(resumed.score(again, BATCH, contextlib.nullcontext), expected)


def test_gradients_of_the_policy_are_not_touched_by_a_pass_of_the_reference():
    def gradients(*, between):
        model = policy(cold_start=True)
        reference = ReferenceModel(model, torch.float32, 1.0)
        train(model)
        loss = score(model, BATCH, contextlib.nullcontext).logp.sum()
        if between:
            reference.score(model, BATCH, contextlib.nullcontext)
        loss.backward()
        return {name: weights.grad for name, weights in model.named_parameters() if weights.grad is not None}

    expected, found = gradients(between=False), gradients(between=True)
    assert expected
    assert all(torch.equal(found[name], value) for name, value in expected.items())
