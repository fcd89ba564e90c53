"""The tokens of a training episode, with their texts if the run's tokenizer is available on this machine."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.episode_columns import list_field
from rstar2_env.view.queries.episodes import tokens_place
from rstar2_env.view.queries.rows import id_of, rows_of

MOST_TOKENS = 20_000
_FILE = "tokenizer.json"
_WINDOW = 8
"""Number of preceding tokens that may change the text of a token."""


def tokens_of(index: RunIndex, config: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the tokens of an episode.

    Args:
        index: Index of the run.
        config: Options of the run, which name its model.
        key: Key of the episode.

    Returns:
        ``tokens``, each with ``text``, ``id``, ``mask``, ``logprob``, ``advantage`` and ``ratio`` (the importance
        ratio), where a missing value is ``None``; ``prompt`` as text, ``prompt_ids`` (the number of the
        prompt's tokens), and a ``note`` if texts or tokens are missing.

    Raises:
        ConfigurationError: The key is invalid.
        KeyError: There is no such episode, or its tokens were not stored.
        EOFError: The file has changed since it was indexed; retry.
    """
    with index.reading() as db:
        row = rows_of(db, [id_of(db, key)])[0]
        place = tokens_place(db, row)
    if place is None:
        raise KeyError(f"tokens of {key}")
    record = index.record(*place)
    ids, prompt_ids = (_ids(record, name) for name in ("completion_ids", "prompt_ids"))
    tokenizer, note = _tokenizer(index.run, config)
    cut = len(ids) > MOST_TOKENS
    if cut:
        note = " ".join(filter(None, (note, f"The first {MOST_TOKENS} of {len(ids)} tokens are shown.")))
    ids = ids[:MOST_TOKENS]
    texts = texts_of(tokenizer, ids) if tokenizer else [f"⟨{id_}⟩" for id_ in ids]
    columns = [_column(record, name, len(ids)) for name in ("mask", "logprobs", "advantages", "ratios")]
    names = ("text", "id", "mask", "logprob", "advantage", "ratio")
    return {
        "tokens": [dict(zip(names, values, strict=True)) for values in zip(texts, ids, *columns, strict=True)],
        "prompt": tokenizer.decode(prompt_ids[:MOST_TOKENS], skip_special_tokens=False) if tokenizer else None,
        "prompt_ids": len(prompt_ids),
        "note": note,
    }


def texts_of(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Return the text that each token adds to the preceding text.

    If several tokens make one character, the last of these tokens gets the character, and the others an empty text.

    Args:
        tokenizer: Tokenizer from the library ``tokenizers``.
        ids: Ids of the tokens.
    """
    texts, begin, shown = [], 0, ""
    for at in range(len(ids)):
        text = tokenizer.decode(ids[begin : at + 1], skip_special_tokens=False)
        if text.endswith("�") and at + 1 < len(ids) and at - begin < 4 * _WINDOW:
            texts.append("")  # the character continues in the next token
            continue
        texts.append(text[len(shown) :])
        if at - begin >= _WINDOW:
            begin = at - _WINDOW // 2
            shown = tokenizer.decode(ids[begin : at + 1], skip_special_tokens=False)
        else:
            shown = text
    return texts


def _ids(record: Mapping[str, Any], name: str) -> list[int]:
    """Return the token ids in a line: unsigned integers of 32 bits, as tokenizers require."""
    return [id_ for id_ in list_field(record, name) if isinstance(id_, int) and 0 <= id_ < 2**32]


def _column(record: Mapping[str, Any], name: str, count: int) -> list[Any]:
    """Return the list in the field ``name``, cut or filled with ``None`` to one value for each of ``count`` tokens."""
    known = list_field(record, name)[:count]
    return known + [None] * (count - len(known))


def _tokenizer(run: Path, config: Mapping[str, Any]) -> tuple[Any, str | None]:
    """Load the tokenizer of the run, from its weights or its initial model; else return a note with the reason."""
    model = config.get("model")
    model_path = model.get("path") if isinstance(model, Mapping) else model
    folders = [run / "final", run / "best", run, *sorted(run.glob("checkpoint-*"))[-1:]]
    if isinstance(model_path, str) and model_path:
        folders += [Path(model_path), run / model_path, run.parent / model_path]
    for folder in folders:
        file = folder / _FILE
        try:
            if file.is_file():
                return _loaded(file, file.stat().st_mtime_ns), None
        except Exception as error:  # the exceptions of the library do not share a base class
            return None, f"The tokenizer {file} cannot be loaded ({error}), so tokens are shown as numbers."
    return None, f"No {_FILE} was found in the run or at the path of its model, so tokens are shown as numbers."


@functools.lru_cache(maxsize=4)
def _loaded(file: Path, changed: int) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ValueError("the package tokenizers is not installed") from error
    return Tokenizer.from_file(str(file))
