"""``inside``, ``is_plain_name``: the checks that a file of a run lies in the run's folder."""

from __future__ import annotations

from pathlib import Path

from rstar2_env.core.errors import ConfigurationError


def inside(folder: Path, file: Path) -> Path:
    """Check that a path leads to a file in a run's folder, and return the path unchanged.

    Raises:
        ConfigurationError: The path leads out of the folder (through a link or ``..``), or does not lead to a regular
            file. Without this check, another person's run could show any file of this machine.
    """
    try:
        place, root = file.resolve(), folder.resolve()
        is_other = place.exists() and not place.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # a name with a null character; links that form a circle
        raise ConfigurationError(f"The path of {str(file)!r} in the run {folder} is not valid: {error}.") from error
    if not place.is_relative_to(root):
        raise ConfigurationError(
            f"{file} leads to {place}, outside of the run's folder {root}, and only files in this folder belong to the "
            "run: replace the link with a copy, or remove it."
        )
    if is_other:
        raise ConfigurationError(f"{file} is not a file: replace it with a file, or remove it.")
    return file


def is_plain_name(name: str) -> bool:
    """Whether a text is the name of a file or folder, and not a path to another folder."""
    return name not in ("", "..") and Path(name).name == name
