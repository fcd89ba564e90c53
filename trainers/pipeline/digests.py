"""What the content of a file or a folder is, as a digest, and what a stage is made from, as a fingerprint.

Of a model's folder that which a model is loaded from counts, and no log, checkpoint or card beside it; of a run's as an
optimizer, the optimizer's state in its newest checkpoint. Digests are kept with size and time of every file, so that
weights are read once. Not covered: models and data on a hub, whose name stands for them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.files.lines import write_json
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
"""What a run begins with that carries the optimizer of a checkpoint on; see ``backends/trl/carried``."""
_EPISODES = f"{layout.EPISODES}/"


class Digests:
    """Digests of files and folders, kept in a file of the pipeline's folder.

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
        """The digest of an output or an input; ``None`` where nothing is there.

        Args:
            path: A file or a folder.
            kind: What it is, see ``Output``.
            sync: Wait until the disk has it.
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
        """Keep what was computed."""
        write_json(self._file, self._kept)


def fingerprint(made_from: Mapping[str, Any], folder: Path) -> str:
    """A digest of everything that a stage is made from; where the pipeline's folder lies does not count."""
    text = json.dumps(_relative(jsonable(made_from), str(folder)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(before: Any, after: Any, prefix: str = "") -> Iterator[str]:
    """The names in which two records differ, dotted, each with what it was and what it is."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                yield from differences(before.get(name), after.get(name), f"{prefix}.{name}" if prefix else str(name))
    elif before != after:
        yield f"{prefix} was {_short(before)} and is {_short(after)}"


def made_from(kind: str, resolved: Mapping[str, Any], inputs: Mapping[str, Any], folder: Path, **more: Any) -> Any:
    """What a stage is made from, as it is kept: JSON, with paths relative to the pipeline's folder."""
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
            for line in sorted(map(_played, opened)):  # 32 bytes of each, as the file may be larger than the memory
                found.update(line)
        else:
            while piece := opened.read(_PIECE):
                found.update(piece)
        if sync:
            os.fsync(opened.fileno())
    return found.hexdigest()


def _played(line: bytes) -> bytes:
    """The digest of what was played in an episode; of a line that is damaged, of its bytes.

    How long an episode took, in which order they ended and where the model lies is not what was played.
    """
    with suppress(ValueError, TypeError, RecursionError):
        line = json.dumps({**json.loads(line), "seconds": None, "run": None}, sort_keys=True).encode()
    return hashlib.sha256(line).digest()
