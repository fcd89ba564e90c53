"""``WrappedSelector``: base class of selectors that let another selector choose in some groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.episode import Group
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.parts import make_inner

from ..samplers.base import GroupResult
from .base import SELECTORS, AdaptsToResults, ImportanceWeights, Reasons, Selector, Weighs, plain_reasons


@dataclass
class WrappedSelector(CheckedOptions):
    """Base class of selectors that wrap another selector; the state of the wrapped selector is saved too.

    Args:
        of: The wrapped selector, written as in a recipe: ``roc``, ``(all:reject_equal=true)``, ``./mine.py:Mine``.
    """

    of: Any = "all"
    _inner: Selector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Create the wrapped selector.

        Raises:
            ConfigurationError: An option of the wrapped selector is not valid.
            UnknownNameError: The wrapped selector does not exist.
        """
        super().__post_init__()
        self._inner = make_inner(SELECTORS, self.of)

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> Mapping[int, str]:
        """Return the reasons of the wrapped selector; see ``Reasons``."""
        if isinstance(self._inner, Reasons):
            return self._inner.reasons(group, keep, chosen)
        return plain_reasons(group, chosen, "unselected")

    def weighed(self, group: Group, keep: int) -> Mapping[int, Mapping[str, float]]:
        """Return the numbers on which the wrapped selector bases its choice; see ``Weighs``."""
        return self._inner.weighed(group, keep) if isinstance(self._inner, Weighs) else {}

    def weights(self, group: Group, keep: int, chosen: Sequence[int]) -> Sequence[float] | None:
        """Return the importance weights of the wrapped selector's choice; see ``ImportanceWeights``."""
        return self._inner.weights(group, keep, chosen) if isinstance(self._inner, ImportanceWeights) else None

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Adapt to the results of a step's groups; see ``AdaptsToResults``."""
        if isinstance(self._inner, AdaptsToResults):
            self._inner.observe(outcomes)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the wrapped selector, if it has one."""
        inner: Any = self._inner
        return {"of": inner.state_dict()} if hasattr(inner, "state_dict") else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned."""
        inner: Any = self._inner
        if "of" in state:
            inner.load_state_dict(state["of"])
