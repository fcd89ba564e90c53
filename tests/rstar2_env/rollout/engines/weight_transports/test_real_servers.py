"""Every transport with a real ``vllm serve`` on loopback: it computes with the weights of each version in turn."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from chain import Service, free_port
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from vllm_serve import needs_vllm, serve_command

from rstar2_env.rollout import SamplingParams, VllmServerEngine
from rstar2_env.rollout.engines.checkpoint_weights import checkpoint_weights
from rstar2_env.rollout.engines.weight_transports.adapter import Adapter, adapter_state

PROMPT = [5, 6, 7, 8, 9]


@pytest.fixture(scope="module")
def server(policy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server that takes weights in a group over gloo, and adapters."""
    needs_vllm()
    port = free_port()
    command, environment = serve_command(policy_folder, port)
    command[command.index("--worker-extension-cls") + 1] = (
        "rstar2_env.rollout.engines.weight_transports.gloo_worker.GlooWorker"
    )
    command += ["--weight-transfer-config", '{"backend": "gloo"}', "--enable-lora", "--max-lora-rank", "8"]
    command += ["--max-loras", "2"]
    environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"
    log = tmp_path_factory.mktemp("server") / "log"
    service = Service("vllm", command, log, f"http://127.0.0.1:{port}/health", environment)
    service.start()
    try:
        service.ready()
        yield f"http://127.0.0.1:{port}"
    finally:
        service.kill()


@pytest.mark.proof
@pytest.mark.parametrize("transport", ["adapter", "folder", "group"])
def test_it_computes_with_the_weights_of_each_version(
    server: str, policy_folder: Path, tmp_path: Path, transport: str
) -> None:
    first = AutoModelForCausalLM.from_pretrained(str(policy_folder), dtype=torch.float32)
    engine = VllmServerEngine(server, transport=transport, weights_dir=None if transport == "group" else tmp_path)
    policy: Any = copy.deepcopy(first)
    if transport == "adapter":
        policy = get_peft_model(policy, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    torch.manual_seed(0)
    try:
        for version in (1, 2, 5):
            with torch.no_grad():
                for weights in policy.parameters():
                    weights.add_(torch.randn_like(weights) * 0.02 * weights.requires_grad)
            adapter = transport == "adapter"
            engine.update_weights(
                version,
                Adapter(policy.peft_config["default"], adapter_state(policy).items())
                if adapter
                else checkpoint_weights(policy),
            )
            drawn = asyncio.run(engine.generate(PROMPT, SamplingParams(8, temperature=1.0, seed=version)))
            with torch.no_grad():
                logits = policy(torch.tensor([PROMPT + drawn.ids])).logits[0, len(PROMPT) - 1 : -1]
            own = logits.log_softmax(-1).gather(1, torch.tensor(drawn.ids)[:, None])[:, 0]
            assert float((own - torch.tensor(drawn.logprobs)).abs().max()) < 1e-4
            assert drawn.policy_version == version
        if transport != "adapter":
            engine.update_weights(0, first)
    finally:
        engine.close()
    assert not list(tmp_path.iterdir())
