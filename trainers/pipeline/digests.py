"""Digests of files and folders, and fingerprints of stages.

The digest of a model's folder covers only the files from which the model is loaded, not logs, checkpoints or cards. If
a stage uses a run as its ``optimizer``, the digest of the run covers the optimizer state in its newest checkpoint.
Digests are cached together with the size and modification time of every file, so unchanged weights are read only once.
Not covered: models and data on a hub, which are identified by name.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rstar2_env.core.files.json_lines import write_json
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.run_folder import layout

from ..record.checkpoints import checkpoint_at

_PIECE = 1 << 22
_CACHE = "digests.json"
_NOT_THE_MODEL = {
    layout.RUN_FILE,
    layout.SUMMARY_FILE,
    layout.CARD_FILE,
    "sft.json",
    "training_args.bin",
    "trainer_state.json",
}
_MODEL = (".safetensors", ".bin", ".json", ".jinja", ".model", ".txt", ".tiktoken", ".py")
_OPTIMIZER = ("optimizer.json", "optimizer.pt", "shards/*.distcp")
"""Files of a checkpoint that contain the optimizer state; see ``sharding.earlier_optimizer``."""
_EPISODES = f"{layout.EPISODES}/"


class Digests:
    """Digests of files and folders, cached in a file of the pipeline's folder.

    Args:
        folder: The pipeline's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / _CACHE
        try:
            self._kept: dict[str, list[str]] = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            self._kept = {}

    def of(self, path: Path, kind: str, *, sync: bool = False) -> str | None:
        """Return the digest of an output or an input; ``None`` if it does not exist.

        Args:
            path: A file or a folder.
            kind: The kind of the output or input; see ``Output``.
            sync: Whether to wait until the content is on disk.
        """
        files = list(_files(path, kind))
        if not files:
            return None
        stamp = _stamp(files)
        name = f"{kind}:{os.path.abspath(path)}"
        kept = self._kept.get(name)
        if kept and kept[0] == stamp and not sync:
            return kept[1]
        found = hashlib.sha256()
        for relative, file in files:
            found.update(f"{relative}\0{_content(file, kind, sync=sync)}\0".encode())
        self._kept[name] = [stamp, found.hexdigest()]
        return self._kept[name][1]

    def save(self) -> None:
        """Save the cached digests."""
        write_json(self._file, self._kept)


def fingerprint(made_from: Mapping[str, Any], folder: Path) -> str:
    """Return a digest of all inputs and options of a stage; it does not depend on the location of the folder."""
    text = json.dumps(_relative(jsonable(made_from), str(folder)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(before: Any, after: Any, prefix: str = "") -> Iterator[str]:
    """Describe each difference between two records by its dotted name, the old value and the new value.

    Args:
        before: The old record.
        after: The new record.
        prefix: Dotted name of the records themselves, if they are parts of larger ones.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                yield from differences(before.get(name), after.get(name), f"{prefix}.{name}" if prefix else str(name))
    elif before != after:
        yield f"{prefix} was {_short(before)} and is {_short(after)}"


def made_from(kind: str, resolved: Mapping[str, Any], inputs: Mapping[str, Any], folder: Path, **more: Any) -> Any:
    """Return the record of a stage's options and inputs, as JSON, with paths relative to the pipeline's folder.

    Args:
        kind: The kind of the stage.
        resolved: The stage's options without its inputs.
        inputs: Digests of the inputs, by the name of the option.
        folder: The pipeline's folder.
        **more: Further entries of the record, such as the seed.
    """
    return _relative(jsonable({"kind": kind, "options": resolved, "inputs": inputs, **more}), str(folder))


def _relative(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace(f"{folder}{os.sep}", "./")
    if isinstance(value, dict):
        return {name: _relative(one, folder) for name, one in value.items()}
    return [_relative(one, folder) for one in value] if isinstance(value, list) else value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _files(path: Path, kind: str) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield "", path
        return
    if kind == "optimizer":
        checkpoint = checkpoint_at(path)
        for file in () if checkpoint is None else (one for name in _OPTIMIZER for one in sorted(checkpoint.glob(name))):
            yield file.name, file
        return
    for file in sorted(path.rglob("*")) if kind != "model" else sorted(path.glob("*")):
        if not file.is_file():
            continue
        relative = file.relative_to(path).as_posix()
        if kind == "model" and (file.suffix not in _MODEL or file.name in _NOT_THE_MODEL):
            continue
        if kind == "episodes" and not relative.startswith(_EPISODES):
            continue
        yield relative, file


def _stamp(files: list[tuple[str, Path]]) -> str:
    found = hashlib.sha256()
    for relative, file in files:
        about = file.stat()
        found.update(f"{relative}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
    return found.hexdigest()


def _content(file: Path, kind: str, *, sync: bool) -> str:
    found = hashlib.sha256()
    with file.open("rb") as opened:
        if kind == "episodes" and file.suffix == ".jsonl":
            # Sort digests of the lines instead of the lines, since the file may be larger than the memory.
            for line in sorted(map(_played, opened)):
                found.update(line)
        else:
            while piece := opened.read(_PIECE):
                found.update(piece)
        if sync:
            os.fsync(opened.fileno())
    return found.hexdigest()


def _played(line: bytes) -> bytes:
    """Return the digest of an episode's content; for a damaged line, the digest of its bytes.

    Times, the order of the episodes and the location of the model are not part of the content.
    """
    with suppress(ValueError, TypeError, RecursionError):
        line = json.dumps({**json.loads(line), "seconds": None, "run": None}, sort_keys=True).encode()
    return hashlib.sha256(line).digest()
