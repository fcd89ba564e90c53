"""``training_memory``: peak bytes of training on one device.

The count includes weights, gradients, AdamW's two moments, the activations that one forward pass keeps for its backward
pass, and the largest temporary tensors; docs/step-costs.md explains the formulas. Covered: plain data parallelism,
FSDP2, ZeRO-2 and ZeRO-3; full weights and LoRA; float32, and bfloat16 over float32 weights; recomputation layer by
layer. Not covered: the allocator's fragmentation, the communication library's buffers, and the program itself (0.5 to
1 GB on a CPU, about as much for the context of an accelerator).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .architecture import Architecture

Sharding = Literal["none", "fsdp2", "zero2", "zero3"]
"""Method by which the training processes divide their state; see ``RunOptions.sharding``."""
TILE_TOKENS, TILE_WORDS = 4096, 32_768
"""Maximum tokens and vocabulary entries of a tile of logits in the fused head (TRL 1.16)."""
CPU_TILE_BYTES, CPU_KEPT_BYTES = 1 << 26, 1 << 28
"""For the head on a CPU: maximum bytes of a tile of float32 logits, and maximum bytes of the log-probabilities that the
forward pass keeps for the backward pass."""
CPU_PASS_BYTES, CPU_ROWS_BYTES = 1 << 29, 3 << 27
"""Maximum bytes of activations that one forward pass on a CPU keeps for its backward pass: in a training step, and in a
cold start, whose rows share no prefixes. A smaller pass would cut the prefix trees of a training step; separate rows
train as fast in smaller passes."""
ZERO_BUCKETS = 2 * 2 * 500_000_000
"""Default size, in bytes, of DeepSpeed's two buckets together: one reduces gradients, and one gathers weights."""


@dataclass(frozen=True, slots=True)
class Training:
    """The setup of a training run.

    Attributes:
        tokens: Number of tokens, including padding, of one forward and backward pass on a device.
        processes: Number of training processes, one per device.
        sharding: Method by which the processes divide weights, gradients and optimizer state.
        bfloat16: Whether training computes in bfloat16, over float32 weights.
        recompute: Whether layers are recomputed in the backward pass (gradient checkpointing).
        lora_rank: Rank of adapters on every linear layer; 0 trains all weights.
        reference: Whether a frozen copy of the model is kept in addition, for a KL term.
        fused: Whether the head has fused kernels, as on accelerators; otherwise torch's operators compute it.
        passes: Number of forward and backward passes of an optimizer step.
    """

    tokens: int
    processes: int = 1
    sharding: Sharding = "none"
    bfloat16: bool = True
    recompute: bool = True
    lora_rank: int = 0
    reference: bool = False
    fused: bool = True
    passes: int = 2

    @property
    def width(self) -> int:
        """Bytes per number in the computation."""
        return 2 if self.bfloat16 else 4

    @property
    def stream(self) -> int:
        """Bytes per number in the residual stream, which has the precision of the weights that a layer uses."""
        whole = self.sharding == "none" and not self.lora_rank
        return 4 if whole else self.width


def training_memory(model: Architecture, how: Training) -> dict[str, int]:
    """Return the bytes on one device by purpose; their sum is the peak.

    Args:
        model: Sizes of the model.
        how: The training setup.
    """
    trained = lora_parameters(model, how.lora_rank) if how.lora_rank else model.parameters
    found = _states(model, how, trained)
    found["activations"] = saved(model, how)
    found["temporaries"] = max(_peaks(model, how))
    if how.passes < 2:
        # The gradients of the only pass are allocated while its activations are freed.
        found["gradients"] = max(0.0, found["gradients"] - found["activations"] - found["temporaries"])
    return {name: round(number) for name, number in found.items()}


def lora_parameters(model: Architecture, rank: int) -> int:
    """Return the number of parameters of adapters on every linear layer except the head."""
    h, q, kv, i = model.hidden, model.query_width, model.kv_width, model.intermediate
    ends = (h + q) + 2 * (h + kv) + (q + h) + max(1, model.experts) * 3 * (h + i)
    return model.layers * rank * ends


def pass_tokens(model: Architecture, how: Training, limit: int = CPU_PASS_BYTES) -> int:
    """Return the number of tokens at which the activations of a pass on a CPU just fit into a limit.

    Args:
        model: Sizes of the model.
        how: The training setup; its ``tokens`` are not used.
        limit: Bytes of the activations.
    """
    return max(1, int(limit / saved(model, replace(how, tokens=1))))


def _states(model: Architecture, how: Training, trained: int) -> dict[str, float]:
    """Return the bytes of weights, gradients and optimizer state, and of the weight copies that a pass uses.

    Args:
        model: Sizes of the model.
        how: The training setup.
        trained: Number of trained parameters.
    """
    whole, share = model.parameters, 1 / how.processes
    frozen = whole if how.lora_rank else 0
    unit, root = model.layer_parameters, model.embedding_parameters
    held = {"weights": 0.0, "gradients": 4.0 * trained, "optimizer": 8.0 * trained, "gathered": 0.0}
    if how.sharding == "none":
        held["weights"] = 4 * trained + how.width * frozen
        # Autocast keeps copies of the matrices until the end of the forward pass; then the graph keeps them.
        held["gathered"] = how.width * model.matrix_parameters if how.bfloat16 and not how.lora_rank else 0.0
        if how.processes > 1:
            held["gathered"] += 4 * trained  # the buckets in which data parallelism averages gradients
    elif how.sharding == "fsdp2":
        held = {name: number * share for name, number in held.items()}
        held["weights"] = (4 * trained + how.width * frozen) * share
        # The weights of two layers (the current and the prefetched one) and of the root unit (the head and the tied
        # embedding); and for the larger of a layer and the root, the computed and the averaged gradients.
        held["gathered"] = how.width * (2 * unit + root)
        if not how.lora_rank:
            held["gathered"] += (how.width + 4) * max(unit, root)
    else:
        held["optimizer"] = 12 * trained * share
        held["gradients"] = (how.width + 4) * trained * share
        held["weights"] = float(how.width * whole)
        held["gathered"] = float(ZERO_BUCKETS)
        if how.sharding == "zero3":
            held["weights"] *= share
            # The maximum number of gathered weights, DeepSpeed's default, or all weights if they are fewer.
            held["gathered"] += how.width * min(whole, 1_000_000_000)
    if how.reference and not how.lora_rank:
        held["reference"] = how.width * whole * (share if how.sharding in ("fsdp2", "zero3") else 1)
    return held


def layer_saved(model: Architecture, how: Training) -> float:
    """Return the bytes per token that one layer keeps for its backward pass.

    A normalization keeps its input in float32 and its result before and after the weight. Attention keeps queries,
    keys, values, its result, and one number per head. A feed-forward part keeps four vectors of its width.
    """
    c, s, norms = how.width, how.stream, 4.0
    h, q, kv, i = model.hidden, model.query_width, model.kv_width, model.intermediate
    # Autocast keeps a rounded input for each matrix: three of attention, two of the feed-forward part.
    casts = 2 if s == c else 5
    kept = 2 * h * (4 + s) + casts * h * c + 2 * norms
    kept += c * (2 * q + 2 * kv) + 4 * model.heads
    if model.qk_norm:
        kept += (q + kv) * (4 + c) + norms * (model.heads + model.kv_heads)
    passed = max(1, model.active_experts)
    kept += 4 * i * c * passed
    if model.experts:
        # Tokens are sorted by expert: a copy before and a copy after the experts, and the router's choice.
        kept += 2 * passed * h * c + 4 * (2 * model.experts + passed)
    if how.lora_rank:
        kept += 7 * how.lora_rank * c
    return kept


def saved(model: Architecture, how: Training) -> float:
    """Return the bytes that a forward pass keeps for the backward pass; a recomputed layer keeps only its input."""
    each = how.stream * model.hidden if how.recompute else layer_saved(model, how)
    # Outside of the layers: rotary angles, and the last normalization.
    around = 2 * model.head_dim * how.stream + model.hidden * (4 + 2 * how.stream)
    return how.tokens * (model.layers * each + around)


def _peaks(model: Architecture, how: Training) -> tuple[float, float]:
    """Return the bytes of temporary tensors in the head, and in the backward pass of a layer."""
    head: float = how.width * min(how.tokens, TILE_TOKENS) * min(model.vocabulary, TILE_WORDS)
    if not how.fused:
        logits = 4 * how.tokens * model.vocabulary
        head = min(logits, CPU_TILE_BYTES)
        # The forward pass keeps a small number of logits; with more, the backward pass holds three tiles.
        head = head + logits if logits <= CPU_KEPT_BYTES else 3 * head
    head += 4 * how.tokens * model.hidden  # the gradient of the head's input is accumulated in float32
    if not how.lora_rank:
        head += 4 * model.embedding_parameters  # and the gradient of its weight
    wide = model.intermediate * max(1, model.active_experts)
    layer = float(how.tokens) * (3 * wide * how.width + 3 * 4 * model.hidden)
    if how.recompute:
        layer += how.tokens * layer_saved(model, how)
    return head, layer


def total(memory: Mapping[str, int]) -> int:
    """Return the sum of the bytes of all purposes."""
    return sum(memory.values())
