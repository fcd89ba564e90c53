"""``Closing``: base class of objects with a method ``close``; ``release_memory``: frees unused memory."""

from __future__ import annotations

import ctypes
import gc
import sys
from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """An object that must be closed, by its method ``close`` or by a ``with`` statement."""

    @abstractmethod
    def close(self) -> None:
        """Release the resources of the object."""

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the object."""
        self.close()


def release_memory() -> None:
    """Return unused memory to the operating system, and torch's cached memory to the accelerator.

    Trainers and their callbacks refer to each other, so a model and its optimizer stay in memory until the garbage
    collector finds them. Even after that, the C library and, on an accelerator, torch keep the freed memory.
    """
    gc.collect()
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's alone
    if trim is not None:
        trim(0)
