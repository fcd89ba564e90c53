"""Cuts long text in the middle, with a note on the length of the omitted part."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.errors import ConfigurationError, MissingExtraError


@runtime_checkable
class Tokenizer(Protocol):
    """The methods of a Hugging Face tokenizer that counting and cutting need."""

    def encode(self, text: str, /, *, add_special_tokens: bool = True) -> Any:
        """Text to token ids."""
        ...

    def decode(self, token_ids: Any, /) -> Any:
        """Token ids to text."""
        ...


def make_tokenizer(tokenizer: Tokenizer | str | None) -> Tokenizer | None:
    """The tokenizer itself, or the one of a folder or a model on the Hub; each is loaded once per process.

    Raises:
        MissingExtraError: A name was given, and transformers is not installed.
        ConfigurationError: There is no tokenizer of that name.
    """
    return _loaded(tokenizer) if isinstance(tokenizer, str) else tokenizer


@functools.cache
def _loaded(name: str) -> Tokenizer:
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise MissingExtraError("train", f"The tokenizer {name!r}") from error
    found: Tokenizer
    try:
        # A folder or a cached download first; neither needs the network.
        found = transformers.AutoTokenizer.from_pretrained(name, local_files_only=True)
        return found
    except (OSError, ValueError) as error:
        if not _HUB_NAME.fullmatch(name):
            raise ConfigurationError(f"There is no folder {name} that holds a tokenizer.") from error
    from rstar2_env.core.net.hub import ask_hub  # imports an HTTP client, which nothing else here needs

    if (answer := ask_hub("models", name)) is not None:
        raise ConfigurationError(f"{name!r} is not a tokenizer: there is no such folder, and {answer}.")
    try:
        found = transformers.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        line = str(error).strip().splitlines()[0]
        raise ConfigurationError(f"The model {name!r} of the hub gives no tokenizer: {line}") from error
    return found


_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def cut_middle(text: str, limit: int, *, tokenizer: Tokenizer | None = None) -> tuple[str, int]:
    """Keep the head and the tail of ``text``, ``limit`` units in total.

    Args:
        text: Any text.
        limit: Number of characters or tokens to keep, without the note on the omitted part.
        tokenizer: Count in its tokens instead of in characters.

    Returns:
        The text, and the number of omitted units (0 if it was short enough).
    """
    if tokenizer is None:
        if len(text) <= limit:
            return text, 0
        head, tail = _halves(text, limit)
        left_out = len(text) - limit
        return f"{head}\n[... {left_out} characters left out ...]\n{tail}", left_out
    if len(text.encode("utf-8", "replace")) <= limit:
        # A token represents at least one byte in every common tokenizer, so short texts need no tokenization.
        return text, 0
    ids = list(tokenizer.encode(text, add_special_tokens=False))
    if len(ids) <= limit:
        return text, 0
    head_ids, tail_ids = _halves(ids, limit)
    left_out = len(ids) - limit
    head, tail = tokenizer.decode(head_ids), tokenizer.decode(tail_ids)
    return f"{head}\n[... {left_out} tokens left out ...]\n{tail}", left_out


def _halves(items: Sequence[Any], limit: int) -> tuple[Any, Any]:
    tail = limit // 2
    return items[: limit - tail], items[len(items) - tail :]
