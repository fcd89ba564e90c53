"""Options and recipes in files, and the options that a run recorded.

Covered: a file of options, which may name its trainer (``trainer = "grpo_roc"``) or be a recipe itself; a run's
``config.json``, or its folder. Not covered: the formats (``rstar2_env.core.files.config_file``), and the meaning of the
options (``names``, ``config``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.config_file import SUFFIXES, read_mapping
from rstar2_env.core.run_folder import layout
from rstar2_env.core.run_folder.inside import inside

_TRAINER = ("trainer", "recipe")
RUN_FILE = "config.json"
"""File into which a run writes its options."""
_OF_A_MODEL = ("model_type", "architectures")
"""Keys by which a model's ``config.json`` is recognized; the folder of a cold start contains such a file too."""
_ABOUT = ("name", "summary", "paper", "source", "checked")
_OF_ONE_RUN = ("output_dir", "resume", "overwrite")


def is_file_name(name: str) -> bool:
    """Whether the name of a trainer refers to a file of options or to the folder of a run."""
    return name.endswith(SUFFIXES) or (("/" in name or name.startswith(".")) and Path(name).is_dir())


def is_run(path: str | Path) -> bool:
    """Whether a folder belongs to a training run, and not to a model, which also has a file ``config.json``."""
    return (Path(path) / RUN_FILE).is_file() and (Path(path) / layout.RUN_FILE).is_file()


@dataclass(frozen=True, slots=True)
class OptionsFile:
    """Contents of a file of options.

    Attributes:
        trainer: Name of the trainer that the file names; empty if it does not name a trainer.
        about: The file's ``name``, ``summary`` and ``paper``, which a file that defines a recipe has; else empty.
        options: The options, as written.
        of_run: Whether a run wrote the file, which then contains every option and every part.
    """

    trainer: str
    about: Mapping[str, str]
    options: dict[str, Any]
    of_run: bool


def read_config(path: str | Path) -> dict[str, Any]:
    """Read the options of a file or of a run's folder; see ``read_file``."""
    return read_file(path).options


def read_file(path: str | Path) -> OptionsFile:
    """Read a file of options, or the options that a run recorded.

    Args:
        path: A TOML, YAML or JSON file, or a run's folder. From a run's file, the options that apply only to that run
            are left out: its folder, and whether it was resumed.

    Raises:
        ConfigurationError: The file cannot be read, is not valid (the message names the file and the line), or
            describes a model.
        MissingExtraError: The file is YAML, and PyYAML is not installed.
    """
    file = _file(path)
    of_run, folder = file.name == RUN_FILE, Path(path).is_dir()
    found = read_mapping(file, of_run=folder)
    if of_run and any(name in found for name in _OF_A_MODEL):
        raise ConfigurationError(
            f"{file} is the configuration of a model, not of a training run: name a trainer that `rstar2 list "
            "trainers` lists, and give the folder as the model.",
            option="model",
            value=str(file.parent),
        )
    if folder:
        trust.found(Path(path), found)
    if of_run and isinstance(found.get("run"), dict):
        found["run"] = {name: value for name, value in found["run"].items() if name not in _OF_ONE_RUN}
    trainers = [name for name in _TRAINER if name in found]
    if len(trainers) > 1:
        raise ConfigurationError(
            f"The file {path} names its trainer twice, as {' and as '.join(trainers)}: omit one of them."
        )
    of_file = {name: found.pop(name) for name in (*trainers, *_ABOUT) if name in found}
    for name, value in of_file.items():
        if not isinstance(value, str):
            raise ConfigurationError(f"In the file {path}, {name} must be a string, not {value!r}.")
    return OptionsFile(of_file.pop(trainers[0]) if trainers else "", of_file, found, of_run)


def _file(path: str | Path) -> Path:
    file = Path(path)
    if not file.is_dir():
        return file
    if not is_run(file):
        lacking = layout.RUN_FILE if (file / RUN_FILE).is_file() else RUN_FILE
        raise ConfigurationError(
            f"The folder {path} does not contain {lacking}, so it is not the folder of a training run."
        )
    return inside(file, file / RUN_FILE)
