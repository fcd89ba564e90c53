"""Claims about norms on a CPU: they compute the formula and its gradients, and other formulas keep their own method."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from rstar2_env.rollout.cpu_norms import RmsNorm, replace_norms


def test_the_gradients_are_those_of_the_formula():
    torch.manual_seed(0)
    x, weight = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda x, weight: RmsNorm.apply(x, weight, 1e-3), (x.requires_grad_(), weight.requires_grad_())
    )


@pytest.mark.parametrize("shape", [(4, 7, 32), (2, 7, 3, 32)])
def test_a_replaced_norm_computes_as_before_also_with_gradients_in_another_layout(shape):
    torch.manual_seed(0)
    before, x = Qwen3RMSNorm(32), torch.randn(shape)
    with torch.no_grad():
        before.weight.normal_()
    after = deepcopy(before)
    assert replace_norms(after) == 1
    found = []
    for norm in (before, after):
        own = x.clone().requires_grad_()
        output = norm(own)
        grad = torch.randn(shape, generator=torch.Generator().manual_seed(1))
        output.backward(grad.transpose(1, 2).contiguous().transpose(1, 2))
        with torch.no_grad():
            assert torch.equal(norm(x), output), "with and without gradients"
        found.append((output.detach(), own.grad, norm.weight.grad))
    (output, *grads), (new_output, *new_grads) = found
    assert torch.equal(new_output, output)
    for old, new in zip(grads, new_grads, strict=True):
        torch.testing.assert_close(new, old, rtol=1e-5, atol=1e-5)


def test_all_norms_of_a_model_are_replaced_and_its_gradients_stay():
    torch.manual_seed(0)
    before = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=96,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
        )
    )
    after = deepcopy(before)
    assert replace_norms(after) == sum(isinstance(module, Qwen3RMSNorm) for module in before.modules()) > 0
    assert replace_norms(after) == 0, "they are replaced already"
    ids = torch.randint(4, 90, (2, 9), generator=torch.Generator().manual_seed(0))
    for model in (before, after):
        model(input_ids=ids, labels=ids).loss.backward()
    for (name, old), new in zip(before.named_parameters(), after.parameters(), strict=True):
        torch.testing.assert_close(
            new.grad, old.grad, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("make_copy", [deepcopy, lambda norm: pickle.loads(pickle.dumps(norm))])
def test_a_copy_of_a_norm_computes_with_its_own_weight(make_copy):
    norm = Qwen3RMSNorm(8)
    replace_norms(norm)
    copy = make_copy(norm)
    with torch.no_grad():
        copy.weight.fill_(3.0)
    x = torch.ones(1, 8)
    torch.testing.assert_close(copy(x), 3 * norm(x))


def test_norms_with_another_formula_or_precision_keep_their_own_method():
    config = Gemma3TextConfig(
        vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1, head_dim=16
    )
    assert replace_norms(Gemma3ForCausalLM(config)) == 0  # 1 + weight
    norm = Qwen3RMSNorm(8)
    replace_norms(norm)
    x = torch.randn(3, 8, dtype=torch.bfloat16)
    assert torch.equal(norm(x), Qwen3RMSNorm.forward(norm, x))


def test_norms_without_values_are_left_alone():
    with torch.device("meta"):
        assert replace_norms(Qwen3RMSNorm(8)) == 0
