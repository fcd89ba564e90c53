"""Output folders of a run, checked before the run begins."""

from __future__ import annotations

import os
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError


def check_folder(folder: str | os.PathLike[str], option: str) -> None:
    """Reject a folder that cannot be written to; nothing is created.

    Args:
        folder: The folder. If it does not exist, its nearest existing parent is checked.
        option: Name of the option that sets the folder, for the message.

    Raises:
        ConfigurationError: The folder is a file, is below a file, or is not writable.
    """
    at = Path(os.path.abspath(folder))
    try:
        while not at.exists():
            at = at.parent
        if not at.is_dir():
            raise ConfigurationError(
                f"{folder} cannot be a folder: {at} is a file. Choose another folder.", option=option
            )
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be accessed: {error.strerror}.", option=option) from error
    if not os.access(at, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{folder} cannot be written: you have no permission to write to {at}.", option=option)
