"""A policy's weights whole, however they are sharded: the same as those of one process."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from tiny_models import tiny_qwen3
from torch_launcher import launch

from rstar2_env.trainers.backends.trl.weight_sync.whole_weights import whole_weights

SCRIPT = """
import itertools, os, sys
os.environ |= {"DS_ACCELERATOR": "cpu", "ACCELERATE_USE_DEEPSPEED": "true"}
import torch, torch.distributed as dist
from peft import LoraConfig, get_peft_model
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from tiny_models import tiny_qwen3
from rstar2_env.rollout.engines.checkpoint_weights import checkpoint_weights
from rstar2_env.trainers.backends.trl.weight_sync.whole_weights import whole_weights
from rstar2_env.trainers.backends.trl.sharding.zero import without_compiling

torch.set_num_threads(1)

def policy(lora, tied):
    model = tiny_qwen3(tie_word_embeddings=tied)
    torch.manual_seed(1)
    adapter = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
    return get_peft_model(model, adapter) if lora else model

def fsdp2(module, lora):
    for part in (*(module.get_base_model() if lora else module).model.layers, module):
        fully_shard(part, mesh=mesh, reshard_after_forward=False)
    assert all(isinstance(one, DTensor) for one in module.parameters())
    with torch.no_grad():  # after which the weights stay gathered
        module(torch.tensor([[3, 4, 5]]))
    return module

def zero3(module, lora):
    import deepspeed
    without_compiling()
    options = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}
    module = deepspeed.initialize(model=module, config=options)[0].module
    assert all(not one.numel() for one in module.parameters())
    return module

def kept(weights):
    return {name: tensor.clone() for name, tensor in weights}

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
for kind in sys.argv[1:]:
    for lora, dtype, tied in itertools.product((False, True), (None, torch.bfloat16), (False, True)):
        expected = kept(checkpoint_weights(policy(lora, tied), dtype=dtype))
        module = globals()[kind](policy(lora, tied), lora)
        for again in range(2):
            found = kept(whole_weights(module, dtype=dtype))
            assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
            for name, tensor in found.items():
                assert type(tensor) is torch.Tensor and tensor.dtype == expected[name].dtype, name
                assert torch.equal(tensor, expected[name]), (kind, lora, dtype, tied, name)
    if dist.get_rank() == 0:
        print("the same with", kind)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What two processes print that compare every kind of sharding."""
    script = tmp_path_factory.mktemp("whole") / "script.py"
    script.write_text(SCRIPT)
    return launch(script, "fsdp2", *["zero3"] * (find_spec("deepspeed") is not None))


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.parametrize("sharding", ["fsdp2", "zero3"])
def test_sharded_weights_come_whole_and_as_one_process_has_them(said: str, sharding: str) -> None:
    if sharding == "zero3" and find_spec("deepspeed") is None:
        pytest.skip("DeepSpeed is not installed (the extra 'deepspeed')")
    assert f"the same with {sharding}" in said


def test_only_parameters_are_cast() -> None:
    model = tiny_qwen3()
    model.register_buffer("bias", torch.ones(2))
    found = dict(whole_weights(model, dtype=torch.bfloat16))
    assert found.pop("bias").dtype == torch.float32
    assert {tensor.dtype for tensor in found.values()} == {torch.bfloat16}
