"""``needs_torch``: turns a failed import of the packages of the extra ``train`` into an error that names the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rstar2_env.core.errors import MissingExtraError

_PACKAGES = ("torch", "transformers", "trl", "accelerate", "datasets")


@contextmanager
def needs_torch(what: str) -> Iterator[None]:
    """Within the ``with`` block, replace the error of a failed import with an error that names the extra ``train``.

    Args:
        what: The feature that needs the packages, as the subject of the error message.

    Raises:
        MissingExtraError: A package of the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name in _PACKAGES:
            raise MissingExtraError("train", what) from error
        raise
