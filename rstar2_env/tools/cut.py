"""Cuts long text at its head, in its middle or at its tail, with a note on the length of the omitted part."""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from rstar2_env.core.errors import ConfigurationError, MissingExtraError

Omitted: TypeAlias = Literal["head", "middle", "tail"]
"""The part of a long text to omit."""


@runtime_checkable
class Tokenizer(Protocol):
    """The methods of a Hugging Face tokenizer that counting and cutting need."""

    def encode(self, text: str, /, *, add_special_tokens: bool = True) -> Any:
        """Return the token ids of a text."""
        ...

    def decode(self, token_ids: Any, /) -> Any:
        """Return the text of token ids."""
        ...


def make_tokenizer(tokenizer: Tokenizer | str | None) -> Tokenizer | None:
    """Load a tokenizer from a folder or from the Hub, once per process; a tokenizer object is returned unchanged.

    Raises:
        MissingExtraError: ``tokenizer`` is a name, and transformers is not installed.
        ConfigurationError: No tokenizer has this name.
    """
    return _loaded(tokenizer) if isinstance(tokenizer, str) else tokenizer


def check_tokenizer(name: str) -> None:
    """Check that a folder has the files of a tokenizer, without loading it; a name on the Hub passes unchecked.

    Raises:
        ConfigurationError: The folder exists but does not contain a tokenizer's files.
    """
    folder = Path(name)
    if folder.exists() and not any(next(folder.glob(pattern), None) for pattern in _TOKENIZER_FILES):
        from rstar2_env.core.model_name import gguf_hint  # imports an HTTP client, which nothing else here needs

        raise ConfigurationError(
            f"{name} does not contain a tokenizer: expected a folder with tokenizer.json or "
            f"tokenizer_config.json.{gguf_hint(folder)}"
        )


@functools.cache
def _loaded(name: str) -> Tokenizer:
    from rstar2_env.models.folder import folder_of_gguf  # here, since a tokenizer by name is rare

    name = folder_of_gguf(name)
    check_tokenizer(name)
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise MissingExtraError("train", f"The tokenizer {name!r}") from error
    found: Tokenizer
    try:
        # A folder or a cached download first; neither needs the network.
        found = transformers.AutoTokenizer.from_pretrained(name, local_files_only=True, trust_remote_code=False)
        return found
    except (OSError, ValueError) as error:
        if not _HUB_NAME.fullmatch(name):
            raise ConfigurationError(f"The folder {name!r} does not exist or does not contain a tokenizer.") from error
    from rstar2_env.core.net.hub import ask_hub  # imports an HTTP client, which nothing else here needs

    if (answer := ask_hub("models", name)) is not None:
        raise ConfigurationError(f"The tokenizer {name!r} cannot be found: no folder has this name, and {answer}.")
    try:
        found = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError) as error:
        line = str(error).strip().splitlines()[0]
        raise ConfigurationError(
            f"The tokenizer of the model {name!r} cannot be loaded from the Hub: {line}"
        ) from error
    return found


_TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "merges.txt")
"""Patterns of file names; a folder with a tokenizer contains at least one match."""
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def cut_text(text: str, limit: int, *, omit: Omitted = "middle", tokenizer: Tokenizer | None = None) -> tuple[str, int]:
    """Keep ``limit`` characters or tokens of ``text``, and replace the rest with a note that states its length.

    Args:
        text: Text to cut; a short text is returned unchanged.
        limit: Number of characters or tokens to keep, not counting the note.
        omit: The part to omit: the ``"head"``, the ``"middle"`` or the ``"tail"``.
        tokenizer: Tokenizer, to count tokens; with ``None``, characters are counted.

    Returns:
        The text, and the number of omitted characters or tokens (0 if the text was short enough).
    """
    units: Any = text
    if tokenizer is not None:
        if len(text.encode("utf-8", "replace")) <= limit:
            # A token represents at least one byte in every common tokenizer, so short texts need no tokenization.
            return text, 0
        units = list(tokenizer.encode(text, add_special_tokens=False))
    left_out = len(units) - limit
    if left_out <= 0:
        return text, 0
    length = {"head": limit, "middle": limit // 2, "tail": 0}[omit]
    head, tail = units[: limit - length], units[len(units) - length :]
    if tokenizer is not None:
        head, tail = tokenizer.decode(head), tokenizer.decode(tail)
    note = f"[... {left_out} {'characters' if tokenizer is None else 'tokens'} left out ...]"
    parts = {"head": (note, tail), "middle": (head, note, tail), "tail": (head, note)}[omit]
    return "\n".join(parts), left_out


def cut_middle(text: str, limit: int, *, tokenizer: Tokenizer | None = None) -> tuple[str, int]:
    """Keep the head and the tail of ``text``: the same as ``cut_text`` with its default ``omit``.

    Args:
        text: Text to cut; a short text is returned unchanged.
        limit: Number of characters or tokens to keep, head and tail together, not counting the note.
        tokenizer: Tokenizer, to count tokens; with ``None``, characters are counted.
    """
    return cut_text(text, limit, tokenizer=tokenizer)
