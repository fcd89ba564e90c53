"""``find_weights``: which weights a path means: of a run, a cold start, a pipeline, or a folder of a model; no torch.

Not covered: what is in the files of the weights.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.model_name import check_model
from rstar2_env.core.run_folder import Run, read_run
from rstar2_env.core.run_folder.layout import RUN_FILE

from ..pipeline.plan import FOLDER as STAGES
from ..pipeline.state import ENDED, states_of
from ..record.checkpoints import step_of, whole_checkpoints

BEST, FINAL = "best", "final"
_WHICH = re.compile(r"best|final|checkpoint-\d+")
_SHARDS = Path("shards", ".metadata")
_ADAPTER = "adapter_config.json"


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that can be exported.

    Attributes:
        folder: Where they are.
        which: ``best``, ``final`` or ``checkpoint-N``; empty for a folder that is of no run.
        run: The run that made them, if one did.
        step: The optimizer steps behind them, where the run says so.
    """

    folder: Path
    which: str = ""
    run: Run | None = None
    step: int | None = None

    @property
    def sharded(self) -> bool:
        """Whether they are in shards, as several processes wrote them."""
        return (self.folder / _SHARDS).is_file()

    @property
    def adapter(self) -> bool:
        """Whether the folder holds a LoRA adapter; of shards nobody knows before they are read."""
        return (self.folder / _ADAPTER).is_file()

    @property
    def options(self) -> dict[str, Any]:
        """The options of the model in the run that made them, by the names of ``ModelOptions``."""
        if self.run is None:
            return {}
        config = self.run.config
        if self.run.kind == "sft":
            return {"path": config.get("model", ""), **{name: config[name] for name in _OF_SFT if name in config}}
        model = config.get("model")
        return dict(model) if isinstance(model, Mapping) else {"path": model}

    @property
    def fingerprint(self) -> str:
        """Changes when the weights are written again: of the names, sizes and times of their files."""
        found = hashlib.sha256()
        for path in sorted(self.folder.rglob("*") if self.sharded else self.folder.glob("*")):
            if path.suffix in (".safetensors", ".bin", ".distcp", ".json"):
                about = path.stat()
                found.update(f"{path.relative_to(self.folder)}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
        return found.hexdigest()


_OF_SFT = ("revision", "chat_template", "dtype", "trust_remote_code", "lora_rank", "lora_alpha", "lora_targets")


def find_weights(path: str | os.PathLike[str], which: str | None = None) -> Weights:
    """Which weights a path means.

    Args:
        path: The folder of a run of training, a cold start or a pipeline; one of the folders in it (``RUN/best``); or
            any folder with a model or a LoRA adapter.
        which: ``best``, ``final`` or ``checkpoint-N``; ``None`` takes ``best`` where there is one, else ``final``.

    Raises:
        ConfigurationError: There are no such weights; the message says which there are.
    """
    folder = Path(path)
    if which is not None and not _WHICH.fullmatch(which):
        raise ConfigurationError(f"{which!r} names no weights: best, final or checkpoint-N do.", option="which")
    if not (folder / RUN_FILE).is_file() and (folder.parent / RUN_FILE).is_file() and _WHICH.fullmatch(folder.name):
        if which not in (None, folder.name):
            raise ConfigurationError(f"{folder} are the weights {folder.name} already.", option="which")
        folder, which = folder.parent, folder.name
    if not (folder / RUN_FILE).is_file():
        return _plain(folder, which)
    run = read_run(folder)
    if run.kind == "evaluation":
        raise ConfigurationError(f"{folder} is an evaluation, which makes no weights: give the run that it evaluated.")
    if run.kind == "pipeline":
        return _of_pipeline(run, which)
    there = _cold_start(run) if run.kind == "sft" else _trained(run)
    wanted = which or next((name for name in (BEST, FINAL) if name in there), None)
    if wanted in there:
        return there[wanted]
    listing = f"there are {', '.join(there)}" if there else "it has saved none yet"
    said = f"no weights {wanted!r}" if wanted else "neither best nor final weights"
    raise ConfigurationError(f"{folder} has {said}: {listing}.", option="which")


def _plain(folder: Path, which: str | None) -> Weights:
    if not folder.is_dir():
        raise ConfigurationError(f"There is no folder {folder}: give that of a run, or of a model.")
    if not _has_model(folder):
        inside = sorted(found for name in (RUN_FILE, "config.json", _ADAPTER) for found in folder.glob(f"*/{name}"))
        hint = f" There is one in {inside[0].parent}." if inside else ""
        raise ConfigurationError(
            f"{folder} is neither the folder of a run (it has no {RUN_FILE}) nor that of a model (it has no "
            f"config.json and no {_ADAPTER}).{hint}"
        )
    check_model(folder)
    if which is not None:
        raise ConfigurationError(f"{folder} is a model and no run: it has no weights to choose.", option="which")
    return Weights(folder)


def _of_pipeline(run: Run, which: str | None) -> Weights:
    """Those of the last stage that ended and made weights.

    Raises:
        ConfigurationError: None has, or it has no such weights.
    """
    states = states_of(run.events)
    ended = [str(event["stage"]) for event in run.events if event.get("event") == ENDED]
    for stage in dict.fromkeys(reversed(ended)):
        folder = run.path / STAGES / stage
        if stage in states and states[stage].ended and _makes_weights(folder):
            return find_weights(folder, which)
    raise ConfigurationError(f"No stage of the pipeline in {run.path} has made weights yet.")


def _makes_weights(folder: Path) -> bool:
    if (folder / RUN_FILE).is_file():
        return read_run(folder).kind in ("training", "sft")
    return _has_model(folder)


def _trained(run: Run) -> dict[str, Weights]:
    saved = run.weights
    there = {
        name: Weights(run.path / name, name, run, saved[name])
        for name in (BEST, FINAL)
        if name in saved and _has_model(run.path / name)
    }
    return there | _checkpoints(run)


def _cold_start(run: Run) -> dict[str, Weights]:
    """Those of a cold start, whose last ones are in the run's own folder once it has ended."""
    there = {}
    if run.finished and _has_model(run.path):
        there[FINAL] = Weights(run.path, FINAL, run, int(run.events[-1]["step"]))
    return there | _checkpoints(run)


def _checkpoints(run: Run) -> dict[str, Weights]:
    return {path.name: Weights(path, path.name, run, step_of(path)) for path in whole_checkpoints(run.path)}


def _has_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() or (folder / _ADAPTER).is_file()
