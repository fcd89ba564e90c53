"""Queries a vLLM server for its properties (model, capacity, kind of log-probabilities), and parses its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.http import HttpClient
from rstar2_env.rollout.engine import EngineStats, FinishReason, Generation, SamplingParams
from rstar2_env.rollout.engines.vllm_parameters import best_of, check_temperature

_METRIC = re.compile(r"^(vllm:\w+)(?:\{(.*)\})? (\S+)$", flags=re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_SAME = 1e-3


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The properties of one vLLM server.

    Attributes:
        model: Name of the served model.
        max_model_len: Maximum number of tokens of prompt and turn together.
        capacity: Number of tokens that fit into the server's KV cache; ``None`` if the server does not report this.
        scaled: Whether the server computes log-probabilities from the logits divided by the temperature.
        full: Whether log-probabilities are normalized over all tokens, even with top-p and top-k.
    """

    model: str
    max_model_len: int
    capacity: int | None
    scaled: bool
    full: bool


async def find_facts(http: HttpClient, base: str, model: str | None, *, retries: int) -> ServerFacts:
    """Determine the properties of a server; must be awaited in the client's event loop.

    Args:
        http: The HTTP client.
        base: The server's address.
        model: The model that it must serve; ``None`` means the first model in the server's list.
        retries: Further attempts if the server does not answer yet.

    Raises:
        ServiceError: The server does not answer, or is not vLLM.
        ConfigurationError: The server does not serve that model.
    """
    listing = await http.ask("GET", base, "/v1/models", retries=retries)
    cards = {str(card["id"]): card for card in listing.get("data", ())} if isinstance(listing, Mapping) else {}
    name = next(iter(cards), "") if model is None else model
    if name not in cards:
        raise ConfigurationError(
            f"The server {base} does not serve the model {model!r}; it serves {', '.join(cards) or 'nothing'}."
        )
    if "max_model_len" not in cards[name]:
        raise ServiceError(
            f"The server {base} does not report max_model_len, so it was not started by `vllm serve`: start "
            "one with `vllm serve`."
        )
    plain = await _probe(http, base, name, temperature=1.0)
    # Temperature and top-k have the largest effect at the prompt where the model is least certain.
    at = plain.index(min(plain))
    warm = (await _probe(http, base, name, temperature=2.0))[at]
    cut = (await _probe(http, base, name, temperature=1.0, top_k=1))[at]
    if cut > plain[at] + _SAME and await keep_full_logprobs(http, base):
        cut = (await _probe(http, base, name, temperature=1.0, top_k=1))[at]
    metrics = await read_metrics(http, base)
    return ServerFacts(
        model=name,
        max_model_len=int(cards[name]["max_model_len"]),
        capacity=_capacity(metrics),
        scaled=abs(warm - plain[at]) > _SAME,
        # If the model is certain at every prompt, the effect cannot be seen.
        full=abs(cut - plain[at]) <= _SAME < -plain[at],
    )


async def keep_full_logprobs(http: HttpClient, base: str) -> bool:
    """Ask a server to normalize log-probabilities over all tokens despite top-p and top-k; return whether it does."""
    try:
        answer = await http.ask("POST", base, "/collective_rpc", {"method": "keep_full_logprobs"}, retries=0)
    except ServiceError:
        # The server is not in development mode, or was started without the worker extension.
        return False
    return all(result.get("kept") for result in answer["results"])


async def read_metrics(http: HttpClient, base: str) -> list[tuple[str, dict[str, str], float]]:
    """Request ``/metrics`` of a server; return name, labels and value of every vLLM metric."""
    text = str(await http.ask("GET", base, "/metrics"))
    return [(name, dict(_LABEL.findall(labels)), float(value)) for name, labels, value in _METRIC.findall(text)]


def stats_of(metrics: list[tuple[str, dict[str, str], float]]) -> EngineStats:
    """Convert a server's metrics to ``EngineStats``, without ``recomputed_tokens``, which vLLM does not report."""

    def total(name: str) -> int:
        return int(sum(value for found, _, value in metrics if found == f"vllm:{name}"))

    usage = [value for name, _, value in metrics if name == "vllm:kv_cache_usage_perc"]
    return EngineStats(
        running=total("num_requests_running"),
        waiting=total("num_requests_waiting"),
        kv_usage=sum(usage) / len(usage) if usage else 0.0,
        preemptions=total("num_preemptions_total"),
        recomputed_tokens=None,
        prompt_tokens=total("prompt_tokens_total"),
        cached_tokens=total("prefix_cache_hits_total"),
        generated_tokens=total("generation_tokens_total"),
    )


def adapters_of(metrics: list[tuple[str, dict[str, str], float]]) -> set[str]:
    """Return the names of the adapters that the requests of a server use or wait for; empty if not reported.

    vLLM's metric has one line for each combination of adapters that has occurred. The value of a line is the time at
    which its combination was last reported, so the line with the latest time is the current state.
    """
    lines = [(time, labels) for name, labels, time in metrics if name == "vllm:lora_requests_info"]
    newest = max(lines, key=lambda line: line[0], default=(0.0, dict[str, str]()))[1]
    named = (newest.get(f"{state}_lora_adapters", "") for state in ("running", "waiting"))
    return {name for names in named for name in names.split(",") if name}


def _capacity(metrics: list[tuple[str, dict[str, str], float]]) -> int | None:
    """Number of tokens that fit into a server's KV caches (several if data parallel); ``None`` if not reported."""
    found = []
    for name, labels, _ in metrics:
        if name == "vllm:cache_config_info":
            tokens = labels.get("kv_cache_size_tokens", "None")
            blocks, size = labels.get("num_gpu_blocks", "None"), labels.get("block_size", "None")
            if tokens.isdigit():
                found.append(int(tokens))
            elif blocks.isdigit() and size.isdigit():
                found.append(int(blocks) * int(size))
    return sum(found) if found else None


def check_sampling(facts: Sequence[ServerFacts], params: SamplingParams) -> None:
    """Check that servers report the log-probabilities that ``Generation`` requires for these sampling parameters.

    Raises:
        ConfigurationError: vLLM does not support the temperature, or a server computes log-probabilities without the
            temperature, or normalizes them over the tokens that top-p and top-k keep.
    """
    check_temperature(params.temperature)
    if params.temperature not in (0.0, 1.0) and not all(found.scaled for found in facts):
        raise ConfigurationError(
            "The vLLM server computes log-probabilities without the temperature: start the server with "
            "--logprobs-mode processed_logprobs, or sample at temperature 1."
        )
    if (params.top_k or params.top_p < 1) and params.temperature and not all(found.full for found in facts):
        raise ConfigurationError(
            "With top_p or top_k, the vLLM server normalizes log-probabilities over the remaining tokens, not "
            "over all tokens: sample with top_p=1 and top_k=0, or start the server with "
            "VLLM_SERVER_DEV_MODE=1 VLLM_USE_V2_MODEL_RUNNER=0 and --worker-extension-cls "
            "rstar2_env.rollout.engines.vllm_worker.FullLogprobs."
        )


def generation_of(answer: Any, base: str, version: int, params: SamplingParams) -> Generation:
    """Parse a server's answer to a completion request as a generated turn.

    Args:
        answer: The JSON of ``/v1/completions``.
        base: The server's address, for messages.
        version: Version of the weights when the request was sent.
        params: Parameters of the request.

    Raises:
        ServiceError: The answer has no token ids with log-probabilities, or the server aborted the request.
    """
    choice = answer["choices"][0] if isinstance(answer, Mapping) and answer.get("choices") else {}
    ids, logprobs = choice.get("token_ids"), (choice.get("logprobs") or {}).get("token_logprobs")
    if ids is None or logprobs is None or len(ids) != len(logprobs):
        raise ServiceError(
            f"The server {base} does not return token ids with log-probabilities, which rollouts need: "
            "use `vllm serve`, version 0.22 or newer."
        )
    reason = choice.get("finish_reason")
    if reason not in ("stop", "length"):
        raise ServiceError(f"The server {base} aborted a request: {reason}.")
    candidates = best_of(choice["logprobs"].get("top_logprobs") or [], params)
    kind: FinishReason = "stop" if reason == "stop" else "length"
    return Generation(list(ids), list(map(float, logprobs)), kind, version, candidates)


async def _probe(http: HttpClient, base: str, model: str, **sampling: Any) -> list[float]:
    """Return the server's log-probability of the most likely next token after each of three fixed prompts."""
    prompts = [[1], [2], [3]]
    body = {"model": model, "prompt": prompts, "max_tokens": 1, "logprobs": 1, "ignore_eos": True, "seed": 0}
    answer = await http.ask("POST", base, "/v1/completions", {**NEUTRAL, **body, **sampling})
    try:
        return [float(max(choice["logprobs"]["top_logprobs"][0].values())) for choice in answer["choices"]]
    except (KeyError, IndexError, TypeError) as error:
        raise ServiceError(
            f"The server {base} does not return log-probabilities, which rollouts need: use `vllm serve`."
        ) from error


NEUTRAL: Mapping[str, Any] = {
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "min_p": 0.0,
    "top_p": 1.0,
    "top_k": 0,
}
"""Sampling parameters that change nothing. They are sent with every request, since a server takes missing parameters
from the model's ``generation_config.json``."""
