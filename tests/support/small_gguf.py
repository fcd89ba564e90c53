"""A GGUF file of a tiny Llama with random weights, as llama.cpp's own writer stores it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from chat_families import byte_level_tokenizer

LAYERS, HIDDEN, INTERMEDIATE, HEADS, KV_HEADS = 2, 64, 96, 2, 1
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
ADDED = ("<|im_start|>", "<|im_end|>")


def write_gguf(file: Path, *, architecture: str = "llama") -> Path:
    """Write the file; the embedding is quantized to eight bits, everything else is float32."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import quantize

    model = json.loads(byte_level_tokenizer())["model"]
    tokens = [token for token, _ in sorted(model["vocab"].items(), key=lambda pair: pair[1])] + list(ADDED)
    rng = np.random.default_rng(0)
    writer = GGUFWriter(str(file), architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - len(ADDED)) + [3] * len(ADDED))
    writer.add_token_merges([" ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"]])
    writer.add_bos_token_id(len(tokens) - 2)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_pad_token_id(len(tokens) - 1)
    writer.add_chat_template(TEMPLATE)
    embedding = rng.normal(size=(len(tokens), HIDDEN)).astype(np.float32)
    kind = GGMLQuantizationType.Q8_0
    writer.add_tensor("token_embd.weight", quantize(embedding, kind), raw_dtype=kind)
    for name, shape in _shapes().items():
        writer.add_tensor(name, (rng.normal(size=shape) / 8 + (len(shape) == 1)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _shapes() -> dict[str, tuple[int, ...]]:
    kv = HIDDEN * KV_HEADS // HEADS
    shapes: dict[str, tuple[int, ...]] = {"output_norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        each: dict[str, tuple[int, ...]] = {
            "attn_norm": (HIDDEN,),
            "ffn_norm": (HIDDEN,),
            "attn_q": (HIDDEN, HIDDEN),
            "attn_k": (kv, HIDDEN),
            "attn_v": (kv, HIDDEN),
            "attn_output": (HIDDEN, HIDDEN),
            "ffn_gate": (INTERMEDIATE, HIDDEN),
            "ffn_up": (INTERMEDIATE, HIDDEN),
            "ffn_down": (HIDDEN, INTERMEDIATE),
        }
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in each.items()}
    return shapes


def stored_tensor(file: Path, name: str) -> Any:
    """A tensor of the file, dequantized by the package that defines the format."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    found = next(tensor for tensor in GGUFReader(str(file)).tensors if tensor.name == name)
    return dequantize(found.data, found.tensor_type)
