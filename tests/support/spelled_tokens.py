"""Tokens that spell their episodes: a small tokenizer learned from the texts of a run, and every row that trained.

Log-probabilities and ratios are drawn, not computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.core.run_folder import EpisodeEntry, RunWriter, TokensEntry, read_run

_BEGIN, _END = "<|im_start|>", "<|im_end|>"
_PROMPT = 2
"""Messages before the policy's first."""


def write_spelled(folder: Path, *, seed: int = 0, pieces: int = 700) -> None:
    """Write the tokenizer of a run and the tokens of its rows that trained, as ``keep_tokens`` does.

    Args:
        folder: The run's folder, with its episodes.
        seed: Seed of log-probabilities and ratios.
        pieces: Size of the vocabulary.
    """
    run, rng = read_run(folder), Random(seed)
    entries = [entry for step in run.steps for entry in run.episodes(step)]
    tokenizer = _learned([message.content for entry in entries for message in entry.episode.messages], pieces)
    tokenizer.save(str(folder / "tokenizer.json"))
    RunWriter(folder, tokens=True).tokens([_row(entry, tokenizer, rng) for entry in entries if entry.kept])


def _learned(texts: Sequence[str], pieces: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=pieces, special_tokens=[_BEGIN, _END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _row(entry: EpisodeEntry, tokenizer: Any, rng: Random) -> TokensEntry:
    messages = entry.episode.messages
    prompt = "".join(f"{_BEGIN}{one.role}\n{one.content}{_END}\n" for one in messages[:_PROMPT])
    ids, mask = list[int](), list[int]()
    for own, text in _spans(messages[_PROMPT:]):
        new = tokenizer.encode(text).ids
        ids += new
        mask += [int(own)] * len(new)
    advantage = (entry.decision.advantage if entry.decision else None) or 0.0
    return TokensEntry(
        entry.step,
        entry.episode.group,
        entry.member,
        tokenizer.encode(f"{prompt}{_BEGIN}assistant\n").ids,
        ids,
        mask,
        [-rng.expovariate(0.6 if rng.random() < 0.25 else 12) * one for one in mask],
        [advantage * one for one in mask],
        [math.exp(rng.gauss(0, 0.15 if rng.random() < 0.1 else 0.01)) if one else 1.0 for one in mask],
    )


def _spans(messages: Sequence[Message]) -> list[tuple[bool, str]]:
    """The texts of the policy and of the environment, in turn, from the policy's first."""
    spans = []
    for message in messages:
        if message.role == "assistant":
            spans.append((True, f"{message.content}{_END}"))
        else:
            spans.append((False, f"\n{_BEGIN}{message.role}\n{message.content}{_END}\n{_BEGIN}assistant\n"))
    return spans
