"""A tiny policy: a character-level tokenizer and an untrained Qwen3 of half a million parameters.

The policy is for demonstrations and tests on a CPU. The fixed words of the ``rstar2`` dialect are single tokens, like
``<tool_call>`` in Qwen's own vocabulary, so a turn is about fifty tokens long.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from rstar2_env.core.files.outputs import begin_folder, files_in, list_files
from rstar2_env.rollout import CHATML
from rstar2_env.tools import PYTHON_TOOL_NAME

_CHARACTERS = "\n" + string.printable[:95]
_SPECIAL = ("<|pad|>", "<|unk|>", "<|im_start|>", "<|im_end|>")
_WORDS = (
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<answer>",
    "</answer>",
    "<reason>",
    "</reason>",
    "\\boxed{",
    '{"name": "',
    PYTHON_TOOL_NAME,
    '", "arguments": {"code": "',
    '", "input": "',
    '"}}',
    "print(",
    "assistant",
    "user",
    "system",
    "Traceback (most recent call last):",
    "  File ",
    ", line ",
    ", in ",
    "<module>",
    "Error: ",
)


def tiny_tokenizer(words: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """Create a tokenizer with the ChatML template.

    Its tokens are printable ASCII characters, and texts that the chat format ``rstar2`` repeats, such as its tags.

    Args:
        words: Further texts that are single tokens. If several of them match, the leftmost and longest match is used.
    """
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL, *_CHARACTERS])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<|unk|>"))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in _SPECIAL])
    every = dict.fromkeys((*_WORDS, *words))
    tokenizer.add_tokens([AddedToken(word, special=False, normalized=False) for word in every])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        unk_token="<|unk|>",
        eos_token="<|im_end|>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHATML
    return fast


def make_tiny_model(
    folder: str | Path, *, hidden: int = 128, layers: int = 3, seed: int = 0, words: Sequence[str] = ()
) -> Path:
    """Write an untrained model and its tokenizer to ``folder``, in the usual format of transformers.

    Args:
        folder: The folder to write to.
        hidden: Width of the residual stream, a multiple of 32.
        layers: Number of layers.
        seed: Seed of the initial weights.
        words: Further tokens, as in ``tiny_tokenizer``.

    Returns:
        The folder.
    """
    tokenizer = tiny_tokenizer(words)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        num_key_value_heads=max(1, hidden // 64),
        head_dim=32,
        max_position_embeddings=2048,
        # Three times the usual value: a model this small then learns to copy numbers in half the steps.
        initializer_range=0.06,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    begin_folder(folder, "model")
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    list_files(folder, *files_in(folder))
    return Path(folder)
