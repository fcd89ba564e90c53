"""Checks that a name refers to a model, before the model's weights or heavy packages are loaded.

Covered: folders, GGUF files, and names on the Hugging Face hub (one query). Not covered: whether the weights can be
read; only loading them shows this.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.net.hub import ask_hub
from rstar2_env.core.run_folder.layout import RUN_FILE

_CONFIGS = ("config.json", "adapter_config.json")
_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?")


def check_model(model: Any) -> None:
    """Check that a name is a folder with a model, a GGUF file, or a model on the hub.

    Args:
        model: A folder, a file or a name. A loaded model and the content of a GGUF file are not checked.

    Raises:
        ConfigurationError: The folder does not exist, it has no model, the base model of its adapter is missing, or
            the hub has no model with that name or does not answer.
    """
    if not isinstance(model, (str, os.PathLike)):
        return
    name, path = os.fspath(model), Path(model)
    if path.is_dir():
        if not any((path / config).is_file() for config in _CONFIGS):
            inside = sorted(found.parent.name for config in _CONFIGS for found in path.glob(f"*/{config}"))
            hint = f" There is one in {path / inside[0]}." if inside else gguf_hint(path)
            raise ConfigurationError(
                f"The folder {name} does not hold a model, because it does not contain a config.json.{hint}",
                option="model",
            )
        _check_run(path)
        _check_base(path)
    elif path.is_file() and path.suffix == ".gguf":
        return
    elif path.exists():
        raise ConfigurationError(
            f"{name} is a file, but not a model: a model is a folder, a GGUF file (.gguf) or a name on "
            "the Hugging Face hub.",
            option="model",
        )
    elif not _HUB_NAME.fullmatch(name):
        raise ConfigurationError(f"There is no folder {name}.{_near(path)}", option="model")
    elif not _is_cached(name) and (answer := ask_hub("models", name)) is not None:
        raise ConfigurationError(
            f"{name!r} is not a model: no folder has this name, and {answer}.{_near(path)}", option="model"
        )


def gguf_hint(path: Path) -> str:
    """Return a hint to name the folder's first GGUF file instead of the folder; empty if the folder has none."""
    files = sorted(path.glob("*.gguf"))
    return f" The folder contains the GGUF file {files[0]}: name this file itself." if files else ""


def _check_run(folder: Path) -> None:
    """Raise a ``ConfigurationError`` if the folder is a run, with models in the subfolders ``best`` and ``final``."""
    inside = [folder / name for name in ("best", "final") if (folder / name).is_dir()]
    if inside and (folder / RUN_FILE).is_file() and not any(folder.glob("*.safetensors")):
        raise ConfigurationError(
            f"{folder} is the folder of a run, not of a model: name the folder of its weights, "
            f"{' or '.join(map(str, inside))}.",
            option="model",
        )


def _check_base(folder: Path) -> None:
    """Raise a ``ConfigurationError`` if the folder holds an adapter whose base model does not exist."""
    try:
        record = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    except OSError:
        return
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"The file {folder}/adapter_config.json is not valid JSON: {error}.", option="model"
        ) from error
    base = record.get("base_model_name_or_path") if isinstance(record, dict) else None
    if not base:
        return
    try:
        check_model(base)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The model {base}, to which the adapter in {folder} belongs, cannot be loaded: "
            f"{error.args[0]} Restore this model, or write its location into base_model_name_or_path of "
            "adapter_config.json.",
            option="model",
        ) from error


def _near(path: Path) -> str:
    """Return a hint that suggests a folder with a similar name, next to ``path``; empty if there is none."""
    try:
        neighbours = [found.name for found in path.parent.iterdir() if found.is_dir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, neighbours, n=1)
    return f" Did you mean {path.parent / near[0]}?" if near else ""


def _is_cached(name: str) -> bool:
    try:
        import huggingface_hub
    except ImportError:
        return False
    return any(isinstance(huggingface_hub.try_to_load_from_cache(name, config), str) for config in _CONFIGS)
