"""``Architecture``: the sizes of a causal transformer, and its number of parameters, cache bytes and operations.

Covered: the dense decoders of Qwen2, Qwen3, Llama and Mistral, and Qwen3 with experts, by a name of ``MODELS`` or from
a folder with a ``config.json``. Not covered: sliding windows, recurrent layers, latent attention, encoders.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError

FAMILIES = ("qwen2", "qwen3", "llama", "mistral", "qwen3_moe")
"""Values of ``model_type`` in ``config.json`` for which the sizes of a model can be computed."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes of a model.

    Attributes:
        name: Name of the model.
        layers: Number of transformer layers.
        hidden: Width of the residual stream.
        intermediate: Width of a feed-forward layer, or of one expert.
        heads: Number of query heads.
        kv_heads: Number of key heads, which is also the number of value heads.
        head_dim: Width of a head.
        vocabulary: Number of tokens of the vocabulary.
        tied: Whether the output head shares its weights with the embedding.
        experts: Number of experts per layer; 0 for a dense model.
        active_experts: Number of experts per layer that process a token.
        qk_norm: Whether queries and keys are normalized, as in Qwen3.
        qkv_bias: Whether the projections of queries, keys and values have a bias, as in Qwen2.
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool = False
    experts: int = 0
    active_experts: int = 0
    qk_norm: bool = False
    qkv_bias: bool = False

    @property
    def query_width(self) -> int:
        """Total width of all query heads."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Total width of all key heads; all value heads together have the same width."""
        return self.kv_heads * self.head_dim

    @property
    def attention_parameters(self) -> int:
        """Number of parameters of the attention matrices of one layer."""
        return self.hidden * (2 * self.query_width + 2 * self.kv_width)

    @property
    def feed_forward_parameters(self) -> int:
        """Number of parameters of the feed-forward matrices of one layer, including all experts and the router."""
        one = 3 * self.hidden * self.intermediate
        return self.experts * (one + self.hidden) if self.experts else one

    @property
    def layer_parameters(self) -> int:
        """Number of parameters of one layer."""
        vectors = 2 * self.hidden + (2 * self.head_dim if self.qk_norm else 0)
        vectors += self.query_width + 2 * self.kv_width if self.qkv_bias else 0
        return self.attention_parameters + self.feed_forward_parameters + vectors

    @property
    def embedding_parameters(self) -> int:
        """Number of parameters of the embedding; the output head has the same number."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Number of parameters; if the output head is tied to the embedding, their weights are counted once."""
        return self.layers * self.layer_parameters + (1 if self.tied else 2) * self.embedding_parameters + self.hidden

    @property
    def matrix_parameters(self) -> int:
        """Number of parameters of the matrices: all linear layers, including the output head."""
        return self.layers * (self.attention_parameters + self.feed_forward_parameters) + self.embedding_parameters

    @property
    def active_parameters(self) -> int:
        """Number of matrix parameters that process one token."""
        if not self.experts:
            return self.matrix_parameters
        passed = self.active_experts * 3 * self.hidden * self.intermediate + self.experts * self.hidden
        return self.layers * (self.attention_parameters + passed) + self.embedding_parameters

    def cache_bytes(self, width: int = 2) -> int:
        """Return the bytes of the keys and values of one token in the cache, with ``width`` bytes per number."""
        return 2 * self.layers * self.kv_width * width

    def forward_operations(self, tokens: float, context: float) -> float:
        """Return the floating-point operations of a forward pass; a token attends to ``context`` tokens on average."""
        return tokens * (2 * self.active_parameters + 4 * self.layers * self.query_width * context)


def architecture_of(model: str) -> Architecture:
    """Return the sizes of a model.

    Args:
        model: A name in ``MODELS``, with or without its organization and variant (``qwen3-14b``,
            ``Qwen/Qwen3-14B-Base``, ``Qwen/Qwen2.5-7B-Instruct``), or a folder with a ``config.json``.

    Raises:
        ConfigurationError: The model is unknown, or its type is not in ``FAMILIES``.
    """
    if Path(model).is_dir():
        return read_architecture(Path(model))
    name = model.rpartition("/")[2].casefold().removesuffix("-base").removesuffix("-instruct")
    if name in MODELS:
        return MODELS[name]
    near = difflib.get_close_matches(name, MODELS, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise ConfigurationError(
        f"{model!r} is neither a folder nor a known model.{meant} Known models: {', '.join(MODELS)}. For another "
        "model, give a folder with its config.json; the weights are not needed.",
        option="model",
    )


def read_architecture(folder: Path) -> Architecture:
    """Read the sizes of a model from the ``config.json`` of its folder.

    Raises:
        ConfigurationError: The file does not exist or cannot be read, or the type is not in ``FAMILIES``.
    """
    file = folder / "config.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"config.json of the folder {folder} cannot be read: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"The file {file} is not valid JSON: {error}.") from error
    return sizes_in(found, folder.resolve().name, where=str(file))


def sizes_in(found: Any, name: str, *, where: str) -> Architecture:
    """Return the sizes in a configuration.

    Args:
        found: The content of ``config.json``.
        name: Name of the model.
        where: Origin of the configuration, for error messages.

    Raises:
        ConfigurationError: A size is missing, or the type is not in ``FAMILIES``.
    """
    if not isinstance(found, Mapping) or found.get("model_type") not in FAMILIES:
        kind = found.get("model_type") if isinstance(found, Mapping) else type(found).__name__
        raise ConfigurationError(
            f"{where}: the memory of a model of the type {kind!r} cannot be computed; supported types are "
            f"{', '.join(FAMILIES)}."
        )
    try:
        return _architecture(name, found)
    except KeyError as error:
        raise ConfigurationError(
            f"{where} does not have the key {error.args[0]}, which is needed to compute the size of the model."
        ) from error


def _architecture(name: str, config: Mapping[str, Any]) -> Architecture:
    kind, heads, hidden = config["model_type"], int(config["num_attention_heads"]), int(config["hidden_size"])
    # transformers 5 writes the number of experts under another name than the models were published with.
    experts = int(config.get("num_local_experts") or config["num_experts"]) if kind == "qwen3_moe" else 0
    return Architecture(
        name,
        layers=int(config["num_hidden_layers"]),
        hidden=hidden,
        intermediate=int(config["moe_intermediate_size" if experts else "intermediate_size"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or hidden // heads),
        vocabulary=int(config["vocab_size"]),
        tied=bool(config.get("tie_word_embeddings", False)),
        experts=experts,
        active_experts=int(config["num_experts_per_tok"]) if experts else 0,
        qk_norm=kind.startswith("qwen3"),
        qkv_bias=kind == "qwen2",
    )


def _qwen3(name: str, layers: int, hidden: int, intermediate: int, heads: int, kv: int, **more: Any) -> Architecture:
    return Architecture(name, layers, hidden, intermediate, heads, kv, 128, 151_936, qk_norm=True, **more)


def _qwen2(name: str, layers: int, hidden: int, intermediate: int, heads: int, kv: int, words: int) -> Architecture:
    tied = hidden < 3000  # the smaller ones of Qwen2.5
    return Architecture(name, layers, hidden, intermediate, heads, kv, hidden // heads, words, tied, qkv_bias=True)


MODELS = {
    one.name: one
    for one in (
        _qwen3("qwen3-0.6b", 28, 1024, 3072, 16, 8, tied=True),
        _qwen3("qwen3-1.7b", 28, 2048, 6144, 16, 8, tied=True),
        _qwen3("qwen3-4b", 36, 2560, 9728, 32, 8, tied=True),
        _qwen3("qwen3-8b", 36, 4096, 12_288, 32, 8),
        _qwen3("qwen3-14b", 40, 5120, 17_408, 40, 8),
        _qwen3("qwen3-32b", 64, 5120, 25_600, 64, 8),
        _qwen3("qwen3-30b-a3b", 48, 2048, 768, 32, 4, experts=128, active_experts=8),
        _qwen3("qwen3-235b-a22b", 94, 4096, 1536, 64, 4, experts=128, active_experts=8),
        _qwen2("qwen2.5-0.5b", 24, 896, 4864, 14, 2, 151_936),
        _qwen2("qwen2.5-1.5b", 28, 1536, 8960, 12, 2, 151_936),
        _qwen2("qwen2.5-3b", 36, 2048, 11_008, 16, 2, 151_936),
        _qwen2("qwen2.5-7b", 28, 3584, 18_944, 28, 4, 152_064),
        _qwen2("qwen2.5-14b", 48, 5120, 13_824, 40, 8, 152_064),
        _qwen2("qwen2.5-32b", 64, 5120, 27_648, 40, 8, 152_064),
        Architecture("llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128_256, tied=True),
        Architecture("llama-3.2-3b", 28, 3072, 8192, 24, 8, 128, 128_256, tied=True),
        Architecture("llama-3.1-8b", 32, 4096, 14_336, 32, 8, 128, 128_256),
        Architecture("llama-3.1-70b", 80, 8192, 28_672, 64, 8, 128, 128_256),
    )
}
"""Models by name, with the sizes in their public configurations; Base and Instruct variants have the same sizes."""
