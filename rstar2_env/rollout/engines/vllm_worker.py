"""Code that runs inside vLLM's workers: log-probabilities of the whole distribution, even with top-p or top-k.

vLLM computes ``processed_logprobs`` from the logits divided by the temperature, normalized over the tokens that top-p
and top-k keep. The protocol ``Engine`` requires normalization over all tokens. Covered: vLLM's V1 model runner
(CPUs; other devices with ``VLLM_USE_V2_MODEL_RUNNER=0``). Not covered: its V2 model runner, which has another sampler;
with it an engine refuses top-p and top-k, and all other log-probabilities are exact without this code.
"""

from __future__ import annotations

from typing import Any


def keep_full_logprobs(worker: Any) -> bool:
    """Make a worker report log-probabilities of the whole distribution; return whether its sampler allows that.

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


class FullLogprobs:
    """Worker extension of a server; the class to pass to ``vllm serve --worker-extension-cls``."""

    def keep_full_logprobs(self) -> dict[str, bool]:
        """Called by ``VllmServerEngine`` through ``/collective_rpc``, an endpoint of development mode."""
        return {"kept": keep_full_logprobs(self)}
