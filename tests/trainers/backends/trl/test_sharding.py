"""Which engines work with sharded weights: processes play different numbers of turns, and may not wait for another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from two_launched import launch_two

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.backends.trl.sharding import check_engine, sharding_of


def state(processes: int = 8, **plugins: Any) -> Any:
    made = {name: SimpleNamespace(**options) for name, options in plugins.items()}
    return SimpleNamespace(num_processes=processes, **made)


@pytest.mark.parametrize(
    ("given", "sharding"),
    [
        (state(), "whole"),
        (state(1, fsdp_plugin={"fsdp_version": 1}), "whole"),
        (state(deepspeed_plugin={"zero_stage": 2}), "whole"),
        (state(deepspeed_plugin={"zero_stage": 3}), "layer by layer"),
        (state(fsdp_plugin={"fsdp_version": 2, "reshard_after_forward": False}), "gathered"),
        (state(fsdp_plugin={"fsdp_version": 2, "reshard_after_forward": True}), "layer by layer"),
        (state(fsdp_plugin={"fsdp_version": 1, "reshard_after_forward": False}), "layer by layer"),
    ],
)
def test_it_is_known_how_weights_are_sharded(given: Any, sharding: str) -> None:
    assert sharding_of(given) == sharding


def test_an_engine_that_would_wait_forever_is_refused_with_what_to_use() -> None:
    check_engine("transformers", "whole", shares_weights=True)
    check_engine("transformers", "gathered", shares_weights=True)
    with pytest.raises(ConfigurationError, match="fsdp_reshard_after_forward: false"):
        check_engine("transformers", "layer by layer", shares_weights=True)


@pytest.mark.parametrize("sharding", ["gathered", "layer by layer"])
def test_an_engine_with_a_copy_needs_whole_weights(sharding: Any) -> None:
    check_engine("vllm-server", "whole", shares_weights=False)
    with pytest.raises(ConfigurationError, match="in one process"):
        check_engine("vllm-server", sharding, shares_weights=False)


SCRIPT = """
import sys
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from tiny_models import tiny_qwen3

dist.init_process_group("gloo")
mesh, model, ids = init_device_mesh("cpu", (2,)), tiny_qwen3(), torch.tensor([[3, 4, 5, 6]])
for part in (*model.model.layers, model):
    fully_shard(part, mesh=mesh, reshard_after_forward=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    with torch.no_grad():
        # One process plays longer than the other, and on other tokens.
        for turn in range(1 + 3 * dist.get_rank()):
            model(ids + turn)
        seen = model(ids).logits.sum().item()
    optimizer.zero_grad()
    model(ids).logits.logsumexp(-1).mean().backward()
    optimizer.step()
    both = [None, None]
    dist.all_gather_object(both, seen)
    assert both[0] == both[1], both
if dist.get_rank() == 0:
    print("same weights", seen)
dist.destroy_process_group()
"""


@pytest.mark.train
@pytest.mark.slow
def test_with_fsdp2_that_keeps_weights_gathered_processes_may_play_different_numbers_of_turns(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert "same weights" in launch_two(script)
