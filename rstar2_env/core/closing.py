"""``Closing``: the base of objects that a ``with`` statement closes at its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """An object with a method ``close``; use it in a ``with`` statement, or call ``close``."""

    @abstractmethod
    def close(self) -> None:
        """Release what the object holds."""

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the object."""
        self.close()
