"""``export_model``: the weights of a run as a folder of its own, with the run's card, and on a hub if asked for.

The folder appears by renaming, so that it is whole or not there; in one that is there already and empty,
``export.json`` appears last. That file says what it was made of, and an export that was made of the same is not made
again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.folders import check_folder
from rstar2_env.core.run_folder.layout import CARD_FILE
from rstar2_env.core.version import __version__

from ..base import needs_training_stack
from ..options.config import DTYPES
from ..record.model_card import model_card
from .push import Push
from .source import Weights, find_weights

RECORD = "export.json"
"""File that says what an export was made of; it is not pushed."""
PRECISIONS = DTYPES[1:]


def export_model(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    which: str | None = None,
    merge: bool = False,
    dtype: str | None = None,
    push: str | None = None,
    private: bool = False,
    update: bool = False,
) -> Path:
    """Write weights of a run as a folder that transformers loads as it stands; push it to a hub, if asked to.

    Args:
        source: The folder of a run of training, a cold start or a pipeline, or of a model.
        out: Folder to write; it must not exist, or be empty, or hold this very export.
        which: ``best``, ``final`` or ``checkpoint-N``; ``None`` takes ``best`` where there is one, else ``final``.
        merge: Merge a LoRA adapter into the weights below it.
        dtype: ``float32``, ``bfloat16`` or ``float16``; ``None`` keeps the precision of the files.
        push: Repository on the hub, ``ORG/NAME``.
        private: Make that repository a private one.
        update: Push into a repository that holds other files.

    Returns:
        The folder.

    Raises:
        ConfigurationError: There are no such weights, the folder holds something else, or the hub refuses what it was
            asked before.
        ServiceError: The hub cannot be reached or refused; the same call again goes on.
        MissingExtraError: torch or transformers is not installed.
    """
    folder = Path(out)
    if dtype is not None and dtype not in PRECISIONS:
        raise ConfigurationError(f"{dtype!r} is none of the precisions {', '.join(PRECISIONS)}.", option="dtype")
    if (private or update) and push is None:
        raise ConfigurationError(
            "private and update say how to push, and no repository to push to is given.", option="push"
        )
    weights = find_weights(source, which)
    asked = _asked(weights, merge, dtype)
    check_folder(folder, "out")
    made = _made(folder, asked)
    repository = None if push is None else Push(push, private=private, update=update)
    if repository is not None and not merge:
        _check_base(weights.folder)
    if not made:
        _make(weights, folder, asked, merge=merge, dtype=dtype)
    if repository is not None:
        _check_base(folder)  # of shards, only the export says whether they are an adapter's
        repository.send(folder, message=f"Weights {weights.which or weights.folder.name}, by rstar2-env {__version__}")
    return folder


def _asked(weights: Weights, merge: bool, dtype: str | None) -> dict[str, Any]:
    return {
        "format": "rstar2-env/export",
        "run": weights.run.path.resolve().name if weights.run else weights.folder.resolve().name,
        "weights": weights.which,
        "step": weights.step,
        "merge": merge,
        "dtype": dtype,
        "fingerprint": weights.fingerprint,
    }


def _made(folder: Path, asked: dict[str, Any]) -> bool:
    """Whether the folder holds this export.

    Raises:
        ConfigurationError: It holds something else.
    """
    if not folder.is_dir() or not any(folder.iterdir()):
        return False
    try:
        held = json.loads((folder / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        held = None
    if held == asked:
        return True
    what = "another export" if isinstance(held, dict) and held.get("format") == asked["format"] else "files already"
    raise ConfigurationError(f"{folder} holds {what}: choose another folder, or remove it.", option="out")


def _make(weights: Weights, folder: Path, asked: dict[str, Any], *, merge: bool, dtype: str | None) -> None:
    with needs_training_stack("Exporting weights"):
        from .write import write_weights
    folder = Path(os.path.abspath(folder))
    # A folder that is there stays: it may be where a shell stands, or a file system of its own.
    there = folder.is_dir()
    beside = folder if there else folder.parent
    beside.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=beside) as made:
        part = Path(made, "part")
        part.mkdir()
        merged, stored = write_weights(weights, part, merge=merge, dtype=dtype)
        card = _card(weights, merged, stored)
        if card:
            (part / CARD_FILE).write_text(card, "utf-8")
        (part / RECORD).write_text(json.dumps(asked, indent=2) + "\n", "utf-8")
        if not there:
            part.rename(folder)
            return
        for path in sorted(part.iterdir(), key=lambda path: path.name == RECORD):
            path.rename(folder / path.name)


def _card(weights: Weights, merged: bool, stored: str) -> str:
    """The run's card, about these weights; of a model of no run, the one that it has."""
    if weights.run is None:
        own = weights.folder / CARD_FILE
        return own.read_text("utf-8") if own.is_file() else ""
    adapter = " A LoRA adapter is merged into them." if merged else ""
    about = f"## Weights\nStored in {stored}; exported by rstar2-env {__version__}.{adapter}\n"
    return f"{model_card(weights.run, weights.folder)}\n{about}"


def _check_base(folder: Path) -> None:
    """Check that an adapter's model is one that others have; a folder without an adapter is one of its own.

    Raises:
        ConfigurationError: It is a folder of this machine.
    """
    if not (folder / "adapter_config.json").is_file():
        return
    base = str(json.loads((folder / "adapter_config.json").read_text("utf-8")).get("base_model_name_or_path", ""))
    if Path(base).exists():
        raise ConfigurationError(
            f"The adapter belongs to the model {base} on this machine, which nobody else has: merge it into that.",
            option="merge",
        )
