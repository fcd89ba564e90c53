"""Small tokenizers in the image of the families whose chat templates TRL ships, made here without any download."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import trl
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from rstar2_env.rollout import CHATML

TEMPLATES = Path(trl.__file__).parent / "chat_templates"

_WORDS = Regex(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CORPUS = [
    "You are a careful solver of problems. What is the answer to this question?\n\nLet me run a program:\n",
    "<tool_response>\n42\n</tool_response>\n\n\nuser assistant system print('hello world')\n  return value  \n\n",
] * 20


@dataclass(frozen=True)
class Family:
    """One family's template and the tokens that it stands on.

    Attributes:
        name: Name of the template's file in TRL; ``chatml`` for our own.
        special: Added tokens that are marked special, as in the family's own tokenizer.
        plain: Added tokens that are not.
        end: What the policy ends its turn with.
        opens: What opens a turn.
        bos: Token that begins a conversation.
        head: What the policy writes before the text of its turn.
        preserves: Whether a later message leaves the rendering of earlier ones as it was.
        options: Options of the template.
    """

    name: str
    special: tuple[str, ...]
    end: str
    opens: str
    plain: tuple[str, ...] = ()
    bos: str | None = None
    head: str = ""
    preserves: bool = True
    options: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def template(self) -> str:
        return CHATML if self.name == "chatml" else (TEMPLATES / f"{self.name}.jinja").read_text(encoding="utf-8")


_QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN_PLAIN = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
_LLAMA = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
)
_LLAMA_PARTS = {"special": _LLAMA, "end": "<|eot_id|>", "opens": "<|start_header_id|>", "bos": "<|begin_of_text|>"}

FAMILIES = [
    Family("chatml", _QWEN, "<|im_end|>", "<|im_start|>"),
    Family("qwen2_5", _QWEN, "<|im_end|>", "<|im_start|>", _QWEN_PLAIN[:2]),
    Family("qwen3", _QWEN, "<|im_end|>", "<|im_start|>", _QWEN_PLAIN, preserves=False),
    Family(
        "qwen3", _QWEN, "<|im_end|>", "<|im_start|>", _QWEN_PLAIN, preserves=False, options={"enable_thinking": False}
    ),
    Family("qwen3_instruct_2507", _QWEN, "<|im_end|>", "<|im_start|>", _QWEN_PLAIN),
    Family("llama3", **_LLAMA_PARTS),  # type: ignore[arg-type]  # the fields of one family, spelt once
    Family("llama3_1", **_LLAMA_PARTS),  # type: ignore[arg-type]  # as above
    # The template prints today's date unless it is told one.
    Family("llama3_2", options={"date_string": "26 Jul 2024"}, **_LLAMA_PARTS),  # type: ignore[arg-type]  # as above
    Family(
        "deepseek_r1_distill",
        ("<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>"),
        "<｜end▁of▁sentence｜>",
        "<｜Assistant｜>",
        ("<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"),
        bos="<｜begin▁of▁sentence｜>",
        preserves=False,
    ),
    Family(
        "gptoss",
        ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>", "<|endoftext|>"),
        "<|return|>",
        "<|start|>",
        head="<|channel|>final<|message|>",
        preserves=False,
    ),
]


@cache
def byte_level_tokenizer() -> str:
    """A byte-level BPE tokenizer of 600 tokens, as JSON; it splits text as Qwen's and Llama's do."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(_WORDS, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        _CORPUS, trainers.BpeTrainer(vocab_size=600, min_frequency=2, initial_alphabet=alphabet, show_progress=False)
    )
    return tokenizer.to_str()


def make_tokenizer(family: Family) -> PreTrainedTokenizerFast:
    """A tokenizer with the family's template and added tokens."""
    tokenizer = Tokenizer.from_str(byte_level_tokenizer())
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in family.special])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in family.plain])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=family.end, bos_token=family.bos)
    fast.chat_template = family.template
    return fast
