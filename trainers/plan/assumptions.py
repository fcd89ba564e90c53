"""``Assumptions``: a plan's assumptions about hardware, software and episodes, each an option."""

from __future__ import annotations

from dataclasses import dataclass, fields

from rstar2_env.core.options.declare import CheckedOptions, option


@dataclass(frozen=True)
class Assumptions(CheckedOptions):
    """The assumptions of a plan.

    Attributes:
        mean_tokens: Mean number of tokens of an episode after its prompt; ``None`` means half of the budget.
        prompt_tokens: Number of tokens of a prompt.
        spread: Standard deviation of the logarithm of an episode's length.
        tool_s: Seconds that an episode waits for its tools, on average.
        memory_share: Share of a device's memory that may be used.
        reserve_gib: GiB per device that are reserved for the runtime, the communication library and the engine.
        bandwidth_share: Share of the memory bandwidth that decoding reaches.
        prefill_share: Share of the peak FLOP/s that prefill, and decoding of many rows, reach.
        train_share: Share of the peak FLOP/s that training of a dense model reaches, including recomputed operations.
        train_share_experts: Share of the peak FLOP/s that training of a model with experts reaches.
        pass_s: Fixed seconds of a forward and backward pass, in addition to the time of its operations.
        sharding_gb_s: Gigabytes per second at which a device gathers sharded weights and reduces gradients.
        decode_step_s: Fixed seconds of a decoding step, in addition to the time to read weights and cache.
        handover_gb_s: Gigabytes per second of a weight sync.
        network_gb_s: Gigabytes per second at which machines read a shared folder, or receive a broadcast.
        host_gb_s: Gigabytes per second at which a device copies to or from host memory.
        devices_per_node: Number of devices of a machine.
        trained_share: Share of the rows that are trained on; the others are not computed.
        other_share: Other seconds of a step, as a share of the seconds of rollout, training and weight sync.
    """

    mean_tokens: int | None = option(None, least=1)
    prompt_tokens: int = option(700, least=1)
    spread: float = option(0.7, above=0)
    tool_s: float = option(0.8, least=0)
    memory_share: float = option(0.92, above=0, most=1)
    reserve_gib: float = option(4.0, least=0)
    bandwidth_share: float = option(0.6, above=0, most=1)
    prefill_share: float = option(0.4, above=0, most=1)
    train_share: float = option(0.49, above=0, most=1)
    train_share_experts: float = option(0.073, above=0, most=1)
    pass_s: float = option(1.35, least=0)
    sharding_gb_s: float = option(14.0, above=0)
    decode_step_s: float = option(2e-3, least=0)
    handover_gb_s: float = option(1.8, above=0)
    network_gb_s: float = option(10.0, above=0)
    host_gb_s: float = option(25.0, above=0)
    devices_per_node: int = option(8, least=1)
    trained_share: float = option(1.0, above=0, most=1)
    other_share: float = option(0.0, least=0)

    def listed(self) -> list[tuple[str, float | int | None, str]]:
        """Return name, value and source of each assumption."""
        return [(one.name, getattr(self, one.name), SOURCES[one.name]) for one in fields(self)]


SOURCES = {
    "mean_tokens": "half of max_episode_tokens, as rStar2-Agent reports for its stages (arXiv 2508.20722, section 5.1)",
    "prompt_tokens": "the prompt of rstar2/MathTool-v0 with a competition problem",
    "spread": "assumed; as in benchmarks/scheduler_sim.py",
    "tool_s": "2.7 calls with 0.3 s each (arXiv 2508.20722, section 3.1)",
    "memory_share": "assumed",
    "reserve_gib": "assumed",
    "bandwidth_share": "assumed; the computed rollout takes within 10 % of the time published by miles for 8 MI300X",
    "prefill_share": "assumed",
    "train_share": "fitted to the difference between 16K and 65K tokens in prime-rl's figures for Qwen3-4B on 8 H100",
    "train_share_experts": "fitted to the training time published by miles for 8 MI300X",
    "pass_s": "fitted to the figures published by prime-rl for Qwen3-0.6B on one H100",
    "sharding_gb_s": "fitted to prime-rl's figures for Qwen3-4B on 8 H100, which include the optimizer's time",
    "decode_step_s": "assumed; as in benchmarks/scheduler_sim.py",
    "handover_gb_s": "fitted to the weight sync time published by miles for 8 MI300X",
    "network_gb_s": "assumed: one port of 100 Gbit/s at the sending machine or the file server",
    "host_gb_s": "assumed: less than half of a PCIe 5.0 link of 16 lanes, which every device of a machine uses at once",
    "devices_per_node": "the number in common machines with these accelerators",
    "trained_share": "an upper bound: every row is trained on",
    "other_share": "assumed; for 8 MI300X, miles published 0.38, including log-probabilities and waking of engines",
}
"""The source of each assumption's default, by the name of the assumption."""
