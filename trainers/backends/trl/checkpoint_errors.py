"""``naming_checkpoint``: converts an error about a file of a checkpoint to an error that names the checkpoint.

A checkpoint may be damaged, or come from another person. The functions that read checkpoints load only tensors and
plain values (``weights_only=True``), and raise exceptions of many classes for any other content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pickle import UnpicklingError

import torch
from torch.distributed import DistError

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.rollout.model_files import LOAD_ERRORS, load_failure


@contextmanager
def naming_checkpoint(checkpoint: str | os.PathLike[str]) -> Iterator[None]:
    """Context manager for reading a checkpoint: converts errors about its files to ``ConfigurationError``.

    Args:
        checkpoint: Folder of the checkpoint.

    Raises:
        ConfigurationError: A file of the checkpoint is missing, damaged, or does not fit the run.
    """
    try:
        yield
    except (Rstar2Error, torch.OutOfMemoryError, DistError):
        raise
    except (*LOAD_ERRORS, RuntimeError, EOFError) as error:
        # The message of torch recommends to read the file without restrictions.
        pickled = isinstance(error, UnpicklingError)
        why = "a file contains something other than tensors and plain values" if pickled else load_failure(error)
        raise ConfigurationError(
            f"The checkpoint {checkpoint} cannot be read: {why.rstrip('.')}. Name another checkpoint, or delete this "
            "one to resume from the one before it."
        ) from error
