"""Locates pipelines and the files that they refer to: the folders ``pipelines`` and ``configs``.

In a checkout, both folders are at the top of the repository; in an installation, both are in the package
``rstar2_env``. Their path relative to this file is the same in both cases.
"""

from __future__ import annotations

from pathlib import Path

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.files.config_file import SUFFIXES

HOME = Path(__file__).resolve().parents[2]
"""The folder that contains ``pipelines`` and ``configs``."""
PIPELINES = HOME / "pipelines"


def presets() -> dict[str, Path]:
    """Return the pipelines of the package, by name."""
    found = sorted(PIPELINES.glob("*")) if PIPELINES.is_dir() else []
    return {path.stem: path for path in found if path.suffix in SUFFIXES}


def find_pipeline(name: str) -> Path:
    """Find the file of a pipeline.

    Args:
        name: A file, or the name of a pipeline of the package (``tiny_cpu``, ``pipelines/tiny_cpu.yaml``).

    Raises:
        UnknownNameError: The package has no pipeline with that name; the message suggests the closest name.
        ConfigurationError: The name has the suffix of a file, and the file does not exist.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = presets()
    for preset, file in known.items():  # by comparison, since the name of a preset may contain a dot
        if path in (Path(preset), Path(file.name), Path("pipelines", file.name)):
            return file
    if path.suffix in SUFFIXES:
        raise ConfigurationError(
            f"The file {name} does not exist (the current folder is {Path.cwd()}). A pipeline of this "
            f"package is given by its name alone: {', '.join(known)}."
        )
    raise UnknownNameError("pipeline", name, known)


def find_file(written: str, pipeline: Path) -> Path | None:
    """Resolve a path that is written in a pipeline's file; return ``None`` if nothing exists there.

    A relative path is looked up in the folder of the pipeline's file, in its parent folder, in the current folder, and
    in the folder ``HOME``, which contains ``configs``.
    """
    folder = pipeline.resolve().parent
    for root in (folder, folder.parent, Path(), HOME):
        try:
            if (root / written).exists():
                return root / written
        except OSError:  # the text is too long for a file name
            return None
    return None
