"""``Wrapped``: what estimators have in common that change the advantages of another one."""

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
    """An estimator over another one; what it needs, and its state, are those of the other one.

    Args:
        of: The other estimator, as a recipe names it: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``.
    """

    of: Any = "group_norm"
    _inner: Advantage = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the other estimator.

        Raises:
            ConfigurationError: It does not take its options.
            UnknownNameError: There is none of that name.
        """
        super().__post_init__()
        object.__setattr__(self, "_inner", make_inner(ADVANTAGES, self.of))

    def inner(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """The advantages of the other estimator."""
        return self._inner(groups, ranks)

    def __getattr__(self, name: str) -> Any:
        """What a trainer asks about an estimator (``least``, ``needs``, ``state_dict``, ...), of the other one."""
        if name.startswith("_"):  # among them ``_inner``, for which a copy asks before it has it
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}.")
        return getattr(self._inner, name)
