"""Where pipelines are, and the files that they refer to: the folders ``pipelines`` and ``configs``.

In a checkout both stand at the top of the repository; installed, they lie in the package ``rstar2_env``, at the same
place as seen from this file.
"""

from __future__ import annotations

from pathlib import Path

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.files.config_file import SUFFIXES

HOME = Path(__file__).resolve().parents[2]
"""The folder that ``pipelines`` and ``configs`` are in."""
PIPELINES = HOME / "pipelines"


def presets() -> dict[str, Path]:
    """The pipelines that come with the package, by name."""
    found = sorted(PIPELINES.glob("*")) if PIPELINES.is_dir() else []
    return {path.stem: path for path in found if path.suffix in SUFFIXES}


def find_pipeline(name: str) -> Path:
    """The file of a pipeline.

    Args:
        name: A file, or the name of one that comes with the package (``tiny_cpu``, ``pipelines/tiny_cpu.yaml``).

    Raises:
        UnknownNameError: There is no preset of that name; the message suggests the nearest.
        ConfigurationError: The name is that of a file, which is not there.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = presets()
    for preset, file in known.items():  # a preset's name may hold a dot, which is no suffix
        if path in (Path(preset), Path(file.name), Path("pipelines", file.name)):
            return file
    if path.suffix in SUFFIXES:
        raise ConfigurationError(
            f"There is no file {name} (the current folder is {Path.cwd()}). Pipelines that come with the package are "
            f"named without a folder: {', '.join(known)}."
        )
    raise UnknownNameError("pipeline", name, known)


def find_file(written: str, pipeline: Path) -> Path | None:
    """The file or folder that a pipeline's file means by a path; ``None`` where there is none.

    A relative path is looked for beside the pipeline's file, in the folder above it, in the current folder, and where
    the package keeps ``configs``.
    """
    folder = pipeline.resolve().parent
    for root in (folder, folder.parent, Path(), HOME):
        try:
            if (root / written).exists():
                return root / written
        except OSError:  # no name of a file: a longer text
            return None
    return None
