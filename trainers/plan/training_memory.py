"""``training_memory``: bytes that training takes on one device, at its highest.

What is counted is what the trainer holds (docs/scaling.md has the formulas in words): weights, their gradients, AdamW's
two moments, what one forward pass keeps for its backward pass, and the largest temporaries. Covered: plain data
parallelism, FSDP2, ZeRO-2 and ZeRO-3; full weights and LoRA; float32, and bfloat16 over float32 weights; recomputation
layer by layer. Not covered: the allocator's fragmentation, the communication library's buffers, and the program itself
(0.5 to 1 GB on a CPU, about as much for the context of an accelerator).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .architecture import Architecture

Sharding = Literal["none", "fsdp2", "zero2", "zero3"]
"""The state that processes divide among them; see ``RunOptions.sharding``."""
TILE_TOKENS, TILE_WORDS = 4096, 32_768
"""The fused head computes logits in tiles of so many tokens and words at most (TRL 1.16)."""
CPU_TILES = 8.25
"""Tiles in float32 that the head's backward pass has at once where it is computed with torch's operators."""
ZERO_BUCKETS = 2 * 2 * 500_000_000
"""Bytes of the two buckets that DeepSpeed reduces gradients and gathers weights in, by default."""


@dataclass(frozen=True, slots=True)
class Training:
    """How a model is trained.

    Attributes:
        tokens: Tokens of one forward and backward pass on a device, padding included.
        processes: Processes that share the work, one a device.
        sharding: The sharding of the processes.
        bfloat16: Whether it is computed in bfloat16, over float32 weights.
        recompute: Whether layers are recomputed in the backward pass (gradient checkpointing).
        lora_rank: Rank of adapters on every linear layer; 0 trains all weights.
        reference: Whether a frozen copy of the model is kept in addition, for a KL term.
        fused: Whether the head has kernels of its own, as on accelerators; without, it is torch's operators.
        passes: Forward and backward passes of an optimizer step.
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
        """Bytes of a number in the computation."""
        return 2 if self.bfloat16 else 4

    @property
    def stream(self) -> int:
        """Bytes of a number in the residual stream: that of the weights as a layer sees them."""
        whole = self.sharding == "none" and not self.lora_rank
        return 4 if whole else self.width


def training_memory(model: Architecture, how: Training) -> dict[str, int]:
    """Bytes on one device, by what they are for; their sum is the highest that is in use at once.

    Args:
        model: The model.
        how: How it is trained.
    """
    trained = lora_parameters(model, how.lora_rank) if how.lora_rank else model.parameters
    found = _states(model, how, trained)
    found["activations"] = saved(model, how)
    found["temporaries"] = max(_peaks(model, how))
    if how.passes < 2:
        # The gradients of the only pass come while its activations go.
        found["gradients"] = max(0.0, found["gradients"] - found["activations"] - found["temporaries"])
    return {name: round(number) for name, number in found.items()}


def lora_parameters(model: Architecture, rank: int) -> int:
    """Parameters of adapters on every linear layer but the head."""
    h, q, kv, i = model.hidden, model.query_width, model.kv_width, model.intermediate
    ends = (h + q) + 2 * (h + kv) + (q + h) + max(1, model.experts) * 3 * (h + i)
    return model.layers * rank * ends


def _states(model: Architecture, how: Training, trained: int) -> dict[str, float]:
    """Return the bytes of persistent state, and of the weight copies that a pass uses."""
    whole, share = model.parameters, 1 / how.processes
    frozen = whole if how.lora_rank else 0
    unit, root = model.layer_parameters, model.embedding_parameters
    held = {"weights": 0.0, "gradients": 4.0 * trained, "optimizer": 8.0 * trained, "gathered": 0.0}
    if how.sharding == "none":
        held["weights"] = 4 * trained + how.width * frozen
        # Autocast keeps its copies of the matrices until the forward pass is over, and the graph from then on.
        held["gathered"] = how.width * model.matrix_parameters if how.bfloat16 and not how.lora_rank else 0.0
        if how.processes > 1:
            held["gathered"] += 4 * trained  # the buckets in which data parallelism averages gradients
    elif how.sharding == "fsdp2":
        held = {name: number * share for name, number in held.items()}
        held["weights"] = (4 * trained + how.width * frozen) * share
        # Two layers of weights, the one ahead included, and the root unit: the head, and what is tied to it; of one
        # layer and of the root, gradients as they are computed and as they are averaged.
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
            # The weights that may be gathered at once, by DeepSpeed's default, or all if they are fewer.
            held["gathered"] += how.width * min(whole, 1_000_000_000)
    if how.reference and not how.lora_rank:
        held["reference"] = how.width * whole * (share if how.sharding in ("fsdp2", "zero3") else 1)
    return held


def layer_saved(model: Architecture, how: Training) -> float:
    """Bytes a token that one layer keeps for its backward pass.

    A normalization keeps its input in float32 and its result before and after the weight; attention keeps queries,
    keys, values, its result, and one number a head; a feed-forward part keeps four of its own width.
    """
    c, s, norms = how.width, how.stream, 4.0
    h, q, kv, i = model.hidden, model.query_width, model.kv_width, model.intermediate
    # Autocast rounds the input of each matrix by itself: three of attention, two of the feed-forward part.
    casts = 2 if s == c else 5
    kept = 2 * h * (4 + s) + casts * h * c + 2 * norms
    kept += c * (2 * q + 2 * kv) + 4 * model.heads
    if model.qk_norm:
        kept += (q + kv) * (4 + c) + norms * (model.heads + model.kv_heads)
    passed = max(1, model.active_experts)
    kept += 4 * i * c * passed
    if model.experts:
        # Tokens are sorted by their experts: a copy on the way in, one on the way out, and the router's choice.
        kept += 2 * passed * h * c + 4 * (2 * model.experts + passed)
    if how.lora_rank:
        kept += 7 * how.lora_rank * c
    return kept


def saved(model: Architecture, how: Training) -> float:
    """Bytes that a forward pass keeps: of every layer all, or its input alone where it is recomputed."""
    each = how.stream * model.hidden if how.recompute else layer_saved(model, how)
    # Around the layers: rotary angles, and the last normalization.
    around = 2 * model.head_dim * how.stream + model.hidden * (4 + 2 * how.stream)
    return how.tokens * (model.layers * each + around)


def _peaks(model: Architecture, how: Training) -> tuple[float, float]:
    """The largest temporaries: those of the head, after the last layer; and those of a layer's backward pass."""
    tile = min(how.tokens, TILE_TOKENS) * min(model.vocabulary, TILE_WORDS)
    head = tile * (how.width if how.fused else CPU_TILES * 4)
    head += 4 * how.tokens * model.hidden  # the gradient of its input adds up in float32
    if not how.lora_rank:
        head += 4 * model.embedding_parameters  # and so does that of its weight
    wide = model.intermediate * max(1, model.active_experts)
    layer = float(how.tokens) * (3 * wide * how.width + 3 * 4 * model.hidden)
    if how.recompute:
        layer += how.tokens * layer_saved(model, how)
    return head, layer


def total(memory: Mapping[str, int]) -> int:
    """The bytes of all parts."""
    return sum(memory.values())
