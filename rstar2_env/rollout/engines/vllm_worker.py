"""What runs inside vLLM's workers: log-probabilities of the whole distribution, also where top-p or top-k cut it.

vLLM's ``processed_logprobs`` are those of the logits divided by the temperature, normalised over the tokens that top-p
and top-k leave. An engine of ours promises them before that cut. Covered: vLLM's first model runner (CPUs; others with
``VLLM_USE_V2_MODEL_RUNNER=0``). Not covered: its second one, whose sampler is built otherwise; there an engine refuses
top-p and top-k, and everything else is exact as it is.
"""

from __future__ import annotations

from typing import Any


def keep_full_logprobs(worker: Any) -> bool:
    """Make a worker report log-probabilities of the whole distribution; returns whether its sampler allows that.

    Args:
        worker: A worker of vLLM, as ``collective_rpc`` hands it to a function.
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
        # Before the draw: it writes into the logits.
        full = logits.log_softmax(dim=-1, dtype=torch.float32)
        drawn, _ = cut_and_draw(logits, generators, k, p)
        return drawn, full

    sampler.forward = forward
    sampler.keeps_full_logprobs = True
    return True


class FullLogprobs:
    """The same for a server: its class goes to ``vllm serve --worker-extension-cls`` as module and name."""

    def keep_full_logprobs(self) -> dict[str, bool]:
        """Called by ``VllmServerEngine`` through ``/collective_rpc``, which a server in development mode offers."""
        return {"kept": keep_full_logprobs(self)}
