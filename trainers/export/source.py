"""``find_weights``: finds the weights of a run, a cold start, a pipeline or a model folder; without torch.

Not covered: reading the weights.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.given_path import check_given
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
        folder: The folder of the weights.
        which: ``best``, ``final`` or ``checkpoint-N``; empty for a folder that does not belong to a run.
        run: The run that produced the weights, if any.
        step: Number of optimizer steps, if the run records it.
    """

    folder: Path
    which: str = ""
    run: Run | None = None
    step: int | None = None

    @property
    def sharded(self) -> bool:
        """Whether the folder holds the weights as shards, as a checkpoint of a sharded run does."""
        return (self.folder / _SHARDS).is_file()

    @property
    def adapter(self) -> bool:
        """Whether the folder holds a LoRA adapter; false for shards, whose content is unknown until they are read."""
        return (self.folder / _ADAPTER).is_file()

    @property
    def options(self) -> dict[str, Any]:
        """Model options of the run that produced the weights, by the field names of ``ModelOptions``."""
        if self.run is None:
            return {}
        config = self.run.config
        if self.run.kind == "sft":
            return {"path": config.get("model", ""), **{name: config[name] for name in _OF_SFT if name in config}}
        model = config.get("model")
        return dict(model) if isinstance(model, Mapping) else {"path": model}

    def runs_own_code(self) -> bool:
        """Return whether the model's own code may run: the run's option or, without a run, the user's trust decides.

        Raises:
            UntrustedError: The run requires the code of the model, but this user neither trusts the run nor made it.
        """
        if self.run is None:
            return trust.trusts()
        trust.found(self.run.path, self.run.config, only={"model": self.options})
        return self.options.get("trust_remote_code") is True

    def refuse_links(self) -> None:
        """Check that every symbolic link in the folder stays in the folder, its run, or the hub's cache of a model.

        Raises:
            ConfigurationError: A link leads elsewhere, so the export would include an unrelated file of this machine.
        """
        root = (self.folder if self.run is None else self.run.path).resolve()
        root = next((each for each in root.parents if each.name.startswith("models--")), root)
        paths = [*self.folder.rglob("*"), *([] if self.run is None else [self.folder])]
        for path in paths:
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise ConfigurationError(
                    f"{path} is a link to {path.resolve()}, outside of the folder {root}, and only files "
                    "in this folder can be exported: replace the link with a copy, or remove it."
                )

    @property
    def fingerprint(self) -> str:
        """Digest of the files' names, sizes and modification times; it changes when the weights are written again."""
        found = hashlib.sha256()
        for path in sorted(self.folder.rglob("*") if self.sharded else self.folder.glob("*")):
            if path.suffix in (".safetensors", ".bin", ".distcp", ".json"):
                about = path.stat()
                found.update(f"{path.relative_to(self.folder)}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
        return found.hexdigest()


_OF_SFT = ("revision", "chat_template", "dtype", "trust_remote_code", "lora_rank", "lora_alpha", "lora_targets")


def find_weights(path: str | os.PathLike[str], which: str | None = None) -> Weights:
    """Find the weights that a path refers to.

    Args:
        path: The folder of a training run, a cold start or a pipeline; a folder in it (``RUN/best``); or any folder
            with a model or a LoRA adapter.
        which: The weights: ``best``, ``final`` or ``checkpoint-N``; ``None`` means ``best`` if it exists, else
            ``final``.

    Raises:
        ConfigurationError: The weights do not exist; the message lists the weights that exist.
    """
    folder = Path(path)
    if which is not None and not _WHICH.fullmatch(which):
        raise ConfigurationError(
            f"The weights to export must be best, final or checkpoint-N; got {which!r}.", option="which"
        )
    if not (folder / RUN_FILE).is_file() and (folder.parent / RUN_FILE).is_file() and _WHICH.fullmatch(folder.name):
        if which not in (None, folder.name):
            raise ConfigurationError(
                f"The path {folder} already selects the weights {folder.name}: omit the option that selects weights.",
                option="which",
            )
        folder, which = folder.parent, folder.name
    if not (folder / RUN_FILE).is_file():
        return _plain(folder, which)
    run = read_run(folder)
    if run.kind == "evaluation":
        raise ConfigurationError(
            f"{folder} is the folder of an evaluation, which has no weights: name the run whose weights were evaluated."
        )
    if run.kind == "pipeline":
        return _of_pipeline(run, which)
    there = _cold_start(run) if run.kind == "sft" else _trained(run)
    wanted = which or next((name for name in (BEST, FINAL) if name in there), None)
    if wanted in there:
        return there[wanted]
    listing = f"there are {', '.join(there)}" if there else "the run has not saved any weights yet"
    said = f"no weights {wanted!r}" if wanted else "neither best nor final weights"
    raise ConfigurationError(f"{folder} has {said}: {listing}.", option="which")


def _plain(folder: Path, which: str | None) -> Weights:
    check_given(folder, "give the folder of a run or of a model", kind="folder")
    if not _has_model(folder):
        inside = sorted(found for name in (RUN_FILE, "config.json", _ADAPTER) for found in folder.glob(f"*/{name}"))
        hint = f" There is one in {inside[0].parent}." if inside else ""
        raise ConfigurationError(
            f"{folder} is neither the folder of a run (it has no {RUN_FILE}) nor that of a model (it has no "
            f"config.json and no {_ADAPTER}).{hint}"
        )
    check_model(folder)
    if which is not None:
        raise ConfigurationError(
            f"{folder} is the folder of a model, not of a run, so it has only one set of weights: omit "
            "the selection of weights.",
            option="which",
        )
    return Weights(folder)


def _of_pipeline(run: Run, which: str | None) -> Weights:
    """Return the weights of the last finished stage that produced weights.

    Raises:
        ConfigurationError: No stage has produced weights, or the requested weights do not exist.
    """
    states = states_of(run.events)
    ended = [str(event["stage"]) for event in run.events if event.get("event") == ENDED]
    for stage in dict.fromkeys(reversed(ended)):
        folder = run.path / STAGES / stage
        if stage in states and states[stage].ended and _makes_weights(folder):
            return find_weights(folder, which)
    raise ConfigurationError(
        f"No stage of the pipeline in {run.path} has produced weights yet: wait until a training stage has finished."
    )


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
    """Return the weights of a cold start, by name (``final``, ``checkpoint-N``).

    The final weights are in the run's own folder; they are left out if the cold start has not finished.
    """
    there = {}
    if run.finished and _has_model(run.path):
        there[FINAL] = Weights(run.path, FINAL, run, int(run.events[-1]["step"]))
    return there | _checkpoints(run)


def _checkpoints(run: Run) -> dict[str, Weights]:
    return {path.name: Weights(path, path.name, run, step_of(path)) for path in whole_checkpoints(run.path)}


def _has_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() or (folder / _ADAPTER).is_file()
