"""``check_given``: raises an error if a path from the user does not exist or is of the wrong kind (file or folder)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rstar2_env.core.errors import ConfigurationError


def check_given(
    path: Path, expected: str, *, kind: Literal["file", "folder"] | None = None, option: str | None = None
) -> None:
    """Check that a path exists and is of the required kind.

    Args:
        path: The path that the user gave.
        expected: The remedy, a phrase that begins with a verb: "give the folder of a run".
        kind: The kind of path that is needed; ``None`` accepts both.
        option: Name of the option with the path.

    Raises:
        ConfigurationError: The path does not exist, or is not of the required ``kind``; the message states which.
    """
    if not path.exists():
        here = "" if path.is_absolute() else f" (the current folder is {Path.cwd()})"
        raise ConfigurationError(f"{path} does not exist{here}: {expected}.", option=option)
    if kind is not None and not (path.is_file() if kind == "file" else path.is_dir()):
        found = "folder" if path.is_dir() else "file" if path.is_file() else "pipe or a device"
        raise ConfigurationError(f"{path} is a {found}: {expected}.", option=option)
