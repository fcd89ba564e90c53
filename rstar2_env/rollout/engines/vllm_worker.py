"""Code that runs inside vLLM's workers: log-probabilities over the whole vocabulary, and local copies of weights.

vLLM computes ``processed_logprobs`` from the logits divided by the temperature, normalized over the tokens that top-p
and top-k keep. ``Generation.logprobs`` must be normalized over all tokens. Covered: vLLM's V1 model runner (CPUs; other
devices with ``VLLM_USE_V2_MODEL_RUNNER=0``). Not covered: its V2 model runner, which has another sampler; with the V2
runner, an engine refuses top-p and top-k. Without top-p and top-k, vLLM already normalizes over all tokens.

Copying weights reduces reads from a shared folder: one server of each machine copies them, and the others read the
copy.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any


def keep_full_logprobs(worker: Any) -> bool:
    """Make a worker normalize log-probabilities over the whole vocabulary; return whether its sampler supports that.

    Args:
        worker: A worker of vLLM, passed by ``collective_rpc``.
    """
    sampler = getattr(getattr(worker.model_runner, "sampler", None), "topk_topp_sampler", None)
    if sampler is None:
        return False
    if getattr(sampler, "keeps_full_logprobs", False):
        return True
    cut_and_draw = sampler.forward

    def forward(logits: Any, generators: Any, k: Any, p: Any) -> Any:
        import torch

        if k is None and p is None:
            return cut_and_draw(logits, generators, k, p)
        # Before the draw, which writes into the logits.
        full = logits.log_softmax(dim=-1, dtype=torch.float32)
        drawn, _ = cut_and_draw(logits, generators, k, p)
        return drawn, full

    sampler.forward = forward
    sampler.keeps_full_logprobs = True
    return True


def copy_weights(source: str, into: str) -> int:
    """Copy a folder of weights to a folder of this machine, after removing copies of earlier versions.

    Args:
        source: The folder of the weights, ``rstar2-weights-RUN-VERSION``.
        into: A folder of this machine, such as ``/dev/shm``.

    Returns:
        The number of bytes that were copied.
    """
    run = Path(source).name.rpartition("-")[0]
    for old in Path(into).glob(f"{run}-*"):
        shutil.rmtree(old, ignore_errors=True)
    copy = Path(into, Path(source).name)
    part = copy.with_name(f"{copy.name}.part{os.getpid()}")
    shutil.copytree(source, part)
    part.rename(copy)
    return sum(file.stat().st_size for file in copy.iterdir())


class FullLogprobs:
    """Worker class for ``vllm serve --worker-extension-cls``, with methods for ``/collective_rpc``."""

    local_rank: int
    """Rank of the worker on its machine, set by vLLM."""

    def keep_full_logprobs(self) -> dict[str, bool]:
        """Call ``keep_full_logprobs`` on this worker; return its result under the key ``kept``."""
        return {"kept": keep_full_logprobs(self)}

    def copy_weights(self, source: str, into: str) -> dict[str, int]:
        """Copy weights to a folder of this machine, for all servers on it; only the server's first worker copies.

        The key ``copied`` of the result is the number of copied bytes, 0 in the other workers.
        """
        return {"copied": 0 if self.local_rank else copy_weights(source, into)}

    def can_copy_weights(self, into: str) -> dict[str, bool]:
        """Return, under the key ``can``, whether this process can write to a folder of this machine."""
        return {"can": os.access(into, os.W_OK | os.X_OK)}

    def drop_weights(self, source: str, into: str) -> None:
        """Remove the copy of the weights ``source`` from the folder ``into`` of this machine."""
        if not self.local_rank:
            shutil.rmtree(Path(into, Path(source).name), ignore_errors=True)
