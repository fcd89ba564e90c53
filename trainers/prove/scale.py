"""``ProofScale``: sizes of the matrices, the model and the training in ``rstar2 doctor --prove``; creates the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from rstar2_env.core.errors import ConfigurationError

from ..plan.architecture import Architecture, sizes_in
from ..plan.device import DEVICES, Device


@dataclass(frozen=True, slots=True)
class ProofScale:
    """Sizes of the matrices, the model and the training in ``rstar2 doctor --prove``.

    Attributes:
        side: Rows and columns of the matrices whose products are measured.
        megabytes: Size of the copied and exchanged tensors.
        hidden: Width of the random model.
        layers: Number of layers of the random model.
        vocabulary: Number of tokens of the random model.
        tokens: Tokens of a row.
        rows: Number of concurrent rows of an engine.
        turn: Number of tokens that an engine generates for each row.
        steps: Optimizer steps of the sharded training.
        traces: Number of traces of the cold start.
        sft_steps: Optimizer steps of the cold start.
        policy_hidden: Width of the model that is trained with reinforcement learning.
        groups: Groups of a step of reinforcement learning, each of four episodes.
        grpo_steps: Optimizer steps of reinforcement learning.
    """

    side: int
    megabytes: int
    hidden: int
    layers: int
    vocabulary: int
    tokens: int
    rows: int
    turn: int
    steps: int
    traces: int
    sft_steps: int
    policy_hidden: int
    groups: int
    grpo_steps: int = 10


TINY = ProofScale(256, 4, 256, 2, 512, 64, 4, 8, 3, 16, 3, 64, 2)
"""The sizes for a CPU, so small that ``rstar2 doctor --prove`` takes seconds."""
WHOLE = ProofScale(8192, 512, 1024, 28, 151_936, 4096, 64, 256, 8, 2000, 300, 512, 16)
"""The sizes for an accelerator; the random model of ``rstar2 doctor --prove`` is then as large as Qwen3-0.6B."""


def device() -> torch.device:
    """Return the device on which ``rstar2 doctor --prove`` computes: an accelerator if there is one, else the CPU."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def scale() -> ProofScale:
    """Return the sizes that ``rstar2 doctor --prove`` uses on this machine."""
    return WHOLE if torch.cuda.is_available() else TINY


def precision() -> torch.dtype:
    """Return the precision in which ``rstar2 doctor --prove`` computes on this machine."""
    return torch.bfloat16 if torch.cuda.is_available() else torch.float32


def known_device() -> Device | None:
    """Return the data sheet of this machine's accelerator; ``None`` if it is unknown."""
    if not torch.cuda.is_available():
        return None
    name = torch.cuda.get_device_name().casefold()
    return next((one for one in DEVICES.values() if one.name.casefold() in name), None)


def random_model(sizes: ProofScale, folder: str | None) -> Any:
    """Return a model with random weights, or the model of a folder, in float32 on the CPU.

    Args:
        sizes: The sizes of a random model.
        folder: Folder of a model; ``None`` for a random one.
    """
    if folder is not None:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = Qwen3Config(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        intermediate_size=3 * sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=max(1, sizes.hidden // 64),
        num_key_value_heads=max(1, sizes.hidden // 128),
        head_dim=64,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        eos_token_id=None,
        bos_token_id=None,
        pad_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def sizes_of(model: Any) -> Architecture | None:
    """Return the sizes of a model for the estimates of ``rstar2 plan``; ``None`` if its type is not supported."""
    try:
        return sizes_in(model.config.to_dict(), "proof", where="the model's configuration")
    except ConfigurationError:
        return None
