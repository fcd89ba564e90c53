"""The tokens of a row that trained, with their text where the run's tokenizer is on this disk."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.facts import list_in, parsed
from rstar2_env.view.index.growing import Place
from rstar2_env.view.queries.episodes import tokens_place
from rstar2_env.view.queries.rows import id_of, rows_of

MOST_TOKENS = 20_000
_FILE = "tokenizer.json"
_WINDOW = 8
"""Tokens before one that may belong to its text."""


def tokens_of(index: RunIndex, config: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The tokens of an episode.

    Args:
        index: The run's.
        config: The run's options, which name its model.
        key: The episode.

    Raises:
        ConfigurationError: The key is none.
        KeyError: There is no such episode, or its tokens were not kept.
        EOFError: The file has changed since it was read; ask again.
    """
    with index.reading() as db:
        row = rows_of(db, [id_of(db, key)])[0]
        place = tokens_place(db, row)
    if place is None:
        raise KeyError(f"tokens of {key}")
    name, start, at, length = place
    try:
        record = parsed(index.line(name, Place(start, at, length)))
    except RecordFormatError as error:
        raise EOFError(f"{name} has changed: {error}") from error
    ids, prompt_ids = (_ids(record, name) for name in ("completion_ids", "prompt_ids"))
    tokenizer, note = _tokenizer(index.run, config)
    cut = len(ids) > MOST_TOKENS
    if cut:
        note = " ".join(filter(None, (note, f"The first {MOST_TOKENS} of {len(ids)} tokens are shown.")))
    ids = ids[:MOST_TOKENS]
    texts = texts_of(tokenizer, ids) if tokenizer else [f"⟨{one}⟩" for one in ids]
    columns = [_column(record, name, len(ids)) for name in ("mask", "logprobs", "advantages", "ratios")]
    names = ("text", "id", "mask", "logprob", "advantage", "ratio")
    return {
        "tokens": [dict(zip(names, one, strict=True)) for one in zip(texts, ids, *columns, strict=True)],
        "prompt": tokenizer.decode(prompt_ids[:MOST_TOKENS], skip_special_tokens=False) if tokenizer else None,
        "prompt_ids": len(prompt_ids),
        "note": note,
    }


def texts_of(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text that each token adds to those before it.

    A character of several tokens stands with the last of them; the others are empty.

    Args:
        tokenizer: A tokenizer of the library ``tokenizers``.
        ids: The tokens.
    """
    texts, begin, shown = [], 0, ""
    for at in range(len(ids)):
        text = tokenizer.decode(ids[begin : at + 1], skip_special_tokens=False)
        if text.endswith("�") and at + 1 < len(ids) and at - begin < 4 * _WINDOW:
            texts.append("")  # the character goes on in the next token
            continue
        texts.append(text[len(shown) :])
        if at - begin >= _WINDOW:
            begin = at - _WINDOW // 2
            shown = tokenizer.decode(ids[begin : at + 1], skip_special_tokens=False)
        else:
            shown = text
    return texts


def _ids(record: Mapping[str, Any], name: str) -> list[int]:
    """Tokens of a line: what a tokenizer takes, whole numbers of 32 bits."""
    return [one for one in list_in(record, name) if isinstance(one, int) and 0 <= one < 2**32]


def _column(record: Mapping[str, Any], name: str, count: int) -> list[Any]:
    """A value for each token; ``None`` where there is none."""
    known = list_in(record, name)[:count]
    return known + [None] * (count - len(known))


def _tokenizer(run: Path, config: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The run's tokenizer, from its weights or from the model that it began with; else why there is none."""
    model = config.get("model")
    named = model.get("path") if isinstance(model, Mapping) else model
    folders = [run / "final", run / "best", run, *sorted(run.glob("checkpoint-*"))[-1:]]
    if isinstance(named, str) and named:
        folders += [Path(named), run / named, run.parent / named]
    for folder in folders:
        file = folder / _FILE
        try:
            if file.is_file():
                return _loaded(file, file.stat().st_mtime_ns), None
        except Exception as error:  # the library's own exceptions have no common type
            return None, f"The tokenizer {file} cannot be loaded ({error}): tokens are shown by their ids."
    return None, f"No {_FILE} was found in the run or where its model lies: tokens are shown by their ids."


@functools.lru_cache(maxsize=4)
def _loaded(file: Path, changed: int) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ValueError("the package tokenizers is not installed") from error
    return Tokenizer.from_file(str(file))
