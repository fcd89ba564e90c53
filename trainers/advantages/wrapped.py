"""``Wrapped``: base class of estimators that change the advantages of another estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.parts import make_inner

from ..ranks import Ranks
from .base import ADVANTAGES, Advantage, Advantages


@dataclass(frozen=True)
class Wrapped(CheckedOptions):
    """Base class of estimators that change an inner estimator's advantages, and have its ``needs`` and its state.

    Args:
        of: The inner estimator, written as in a recipe: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``.
    """

    of: Any = "group_norm"
    _inner: Advantage = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Create the inner estimator.

        Raises:
            ConfigurationError: An option of the inner estimator is not valid.
            UnknownNameError: The inner estimator does not exist.
        """
        super().__post_init__()
        object.__setattr__(self, "_inner", make_inner(ADVANTAGES, self.of))

    def inner(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantages of the inner estimator."""
        return self._inner(groups, ranks)

    def __getattr__(self, name: str) -> Any:
        """Delegate an estimator's attributes (``least``, ``needs``, ``state_dict``, ...) to the inner estimator."""
        if name.startswith("_"):  # includes ``_inner``, which copy requests before it is set
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}.")
        return getattr(self._inner, name)
