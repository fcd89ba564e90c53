"""``export_model``: exports a run's weights to a separate folder with the run's model card, and optionally to a hub.

The folder is written under a temporary name and then renamed, so it is either complete or missing; in an existing empty
folder, ``export.json`` is written last. That file records the source of the export; an export from the same source is
not repeated.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.outputs import MANIFEST, begin_folder, check_folder, kind_of, list_files
from rstar2_env.core.run_folder.layout import CARD_FILE
from rstar2_env.core.trust import bounds
from rstar2_env.core.version import __version__

from ..base import needs_training_stack
from ..options.config import DTYPES
from ..record.model_card import model_card
from .push import Push
from .source import Weights, find_weights

RECORD = "export.json"
"""File that records the source of an export; it is not pushed."""
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
    overwrite: bool = False,
    trust: bool = False,
) -> Path:
    """Write weights of a run to a folder that transformers can load; optionally push it to a hub.

    Args:
        source: The folder of a training run, a cold start, a pipeline or a model.
        out: Folder to write; it must be missing, empty, or hold an export of the same weights and options.
        which: The weights: ``best``, ``final`` or ``checkpoint-N``; ``None`` means ``best`` if it exists, else
            ``final``.
        merge: Merge a LoRA adapter into its base weights.
        dtype: ``float32``, ``bfloat16`` or ``float16``; ``None`` keeps the precision of the files, or of the base model
            for merged weights.
        push: Repository on the hub, ``ORG/NAME``; ``None`` only writes the folder.
        private: Make the repository private.
        update: Allow pushing to a repository that holds other files.
        overwrite: Replace an export of other weights or options in ``out``.
        trust: Allow running the code that comes with the model, from the folder of the run or of the model.

    Returns:
        The folder.

    Raises:
        UntrustedError: The run requires code that comes with its model, and is not trusted.
        ConfigurationError: The weights do not exist, the content of ``out`` must not be replaced, a link leads out of
            the folder of the weights, or a check of the hub fails.
        ServiceError: The hub cannot be reached or rejected the push; calling again resumes it.
        MissingExtraError: torch or transformers is not installed.
    """
    folder = Path(out)
    if dtype is not None and dtype not in PRECISIONS:
        raise ConfigurationError(f"dtype must be one of {', '.join(PRECISIONS)}; got {dtype!r}.", option="dtype")
    if (private or update) and push is None:
        raise ConfigurationError(
            "The options private and update apply only to an upload: omit them, or name the repository ORG/NAME.",
            option="push",
        )
    weights = find_weights(source, which)
    weights.refuse_links()
    with bounds(trust=trust):
        own_code = weights.runs_own_code()
    asked = _asked(weights, merge, dtype)
    made = _made(folder, asked)
    if not made:
        check_folder(folder, "export", resume=None, overwrite=overwrite, inputs=[source])
    repository = None if push is None else Push(push, private=private, update=update)
    if repository is not None and not merge:
        _check_base(weights.folder)
    if not made:
        _make(weights, folder, asked, merge=merge, dtype=dtype, own_code=own_code)
    if repository is not None:
        _check_base(folder)  # for shards, only the export shows whether they are an adapter's
        repository.send(
            folder, message=f"Weights {weights.which or weights.folder.name}, written by rstar2-env {__version__}"
        )
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
    """Return whether the folder already holds the same export: its record of source and options equals ``asked``."""
    try:
        return bool(json.loads((folder / RECORD).read_text("utf-8")) == asked)
    except (OSError, ValueError):
        return False


def _make(
    weights: Weights, folder: Path, asked: dict[str, Any], *, merge: bool, dtype: str | None, own_code: bool
) -> None:
    with needs_training_stack("Exporting weights"):
        from .write import write_weights
    folder = Path(os.path.abspath(folder))
    # Keep an existing folder: it may be a shell's current folder or a mount point.
    there = folder.is_dir()
    replaced = kind_of(folder) is not None
    beside = folder if there and not replaced else folder.parent
    beside.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=beside) as made:
        part = Path(made, "part")
        begin_folder(part, "export")
        merged, stored = write_weights(weights, part, merge=merge, dtype=dtype, own_code=own_code)
        card = _card(weights, merged, stored)
        if card:
            (part / CARD_FILE).write_text(card, "utf-8")
        (part / RECORD).write_text(json.dumps(asked, indent=2) + "\n", "utf-8")
        names = [path.name for path in part.iterdir()]
        if replaced:
            begin_folder(folder, "export")
        list_files(part, *names)
        if not there:
            part.rename(folder)
            return
        for path in sorted(part.iterdir(), key=lambda path: (path.name != MANIFEST, path.name == RECORD)):
            shutil.move(path, folder / path.name)


def _card(weights: Weights, merged: bool, stored: str) -> str:
    """Return the run's model card, adapted to these weights; for a model without a run, its existing card.

    Args:
        weights: The exported weights.
        merged: Whether a LoRA adapter was merged into them.
        stored: The precision of the exported weights.
    """
    if weights.run is None:
        own = weights.folder / CARD_FILE
        return own.read_text("utf-8") if own.is_file() else ""
    adapter = " A LoRA adapter was merged into these weights." if merged else ""
    about = f"## Weights\nStored in {stored}; exported by rstar2-env {__version__}.{adapter}\n"
    return f"{model_card(weights.run, weights.folder)}\n{about}"


def _check_base(folder: Path) -> None:
    """Check that other users can obtain an adapter's base model; a folder without an adapter always passes.

    Raises:
        ConfigurationError: The base model is a folder on this machine.
    """
    if not (folder / "adapter_config.json").is_file():
        return
    base = str(json.loads((folder / "adapter_config.json").read_text("utf-8")).get("base_model_name_or_path", ""))
    if Path(base).exists():
        raise ConfigurationError(
            f"The adapter belongs to the model {base}, which exists only on this machine, so others could "
            "not load the adapter: merge the adapter into the model before you upload it.",
            option="merge",
        )
