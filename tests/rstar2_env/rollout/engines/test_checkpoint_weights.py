"""Weights as a checkpoint has them: of plain modules, of adapters, on a disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import ReferenceType, ref

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_models import tiny_qwen3

from rstar2_env.rollout.engines.checkpoint_weights import Cast, checkpoint_weights


def test_a_plain_modules_weights_are_its_own_and_not_copies() -> None:
    model = tiny_qwen3()
    found = dict(checkpoint_weights(model))
    assert found.keys() == model.state_dict().keys()
    assert found["model.norm.weight"].data_ptr() == model.model.norm.weight.data_ptr()


def test_adapters_are_merged_on_the_way_out_and_stay_as_they_are() -> None:
    plain = tiny_qwen3()
    policy = get_peft_model(tiny_qwen3(), LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    ids = torch.arange(3, 20)[None]
    with torch.no_grad():
        expected = policy(ids).logits
        plain.load_state_dict(dict(checkpoint_weights(policy)))
        assert torch.allclose(plain(ids).logits, expected, atol=1e-4)
        assert torch.equal(policy(ids).logits, expected)
        assert not torch.allclose(tiny_qwen3()(ids).logits, expected, atol=1e-2)


@pytest.mark.parametrize("lora", [False, True])
def test_no_layer_is_whole_while_the_next_one_comes(lora: bool) -> None:
    policy: Any = tiny_qwen3(num_hidden_layers=4)
    if lora:
        policy = get_peft_model(policy, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    expected = {name: tensor.clone() for name, tensor in checkpoint_weights(policy)}
    gathered: list[list[ReferenceType[torch.Tensor]]] = []

    @contextmanager
    def gather(tensors: Mapping[str, torch.Tensor], cast: Cast) -> Iterator[dict[str, torch.Tensor]]:
        assert not any(reference() is not None for layer in gathered for reference in layer)
        whole = {name: cast(name, tensor).detach().clone() for name, tensor in tensors.items()}
        gathered.append([ref(tensor) for tensor in whole.values()])
        yield whole

    seen = 0
    for name, tensor in checkpoint_weights(policy, gather=gather):
        assert torch.equal(tensor, expected[name]), name
        seen += 1
        del tensor
    assert seen == len(expected)
    assert len(gathered) == 4 + 3, "the layers, the embedding, the last norm and the head"


def test_adapters_that_cannot_be_added_are_refused() -> None:
    policy = get_peft_model(tiny_qwen3(), LoraConfig(r=2, target_modules="all-linear", use_dora=True))
    with pytest.raises(NotImplementedError, match="plain LoRA"):
        list(checkpoint_weights(policy))
