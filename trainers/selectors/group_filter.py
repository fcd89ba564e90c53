"""``GroupFilter``: base of selectors that reject whole groups and let another selector choose within the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.parts import make_inner

from ..samplers.base import GroupResult
from .base import SELECTORS, Observes, Reasons, Selector, Weighs, plain_reasons


@dataclass
class GroupFilter(CheckedOptions):
    """Rejects groups that do not pass; another selector, whose state is included, chooses within the others.

    Args:
        of: The other selector, as a recipe names it: ``roc``, ``(all:reject_equal=true)``, ``./mine.py:Mine``.
    """

    of: Any = "all"
    _inner: Selector = field(init=False, repr=False)

    word: ClassVar[str] = "rejected"
    """The reason for the episodes of a rejected group."""

    def __post_init__(self) -> None:
        """Create the other selector.

        Raises:
            ConfigurationError: An option of the other selector is not valid.
            UnknownNameError: The other selector does not exist.
        """
        super().__post_init__()
        self._inner = make_inner(SELECTORS, self.of)

    def passes(self, counted: Sequence[Episode]) -> bool:
        """Return whether a group passes, given its available episodes. Override it."""
        raise NotImplementedError

    def looks_at(self, counted: Sequence[Episode]) -> Mapping[str, float]:
        """Return the numbers by which the filter decides, and their bounds, by name. Override it."""
        return {}

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """See ``Selector``."""
        return self._inner(group, keep, rng) if self._lets(group) else []

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> Mapping[int, str]:
        """See ``Reasons``."""
        if not self._lets(group):
            return {at: self.word if episode.available else episode.end for at, episode in enumerate(group)}
        if isinstance(self._inner, Reasons):
            return self._inner.reasons(group, keep, chosen)
        return plain_reasons(group, chosen, "unselected")

    def weighed(self, group: Group, keep: int) -> dict[int, dict[str, float]]:
        """See ``Weighs``: the numbers of the filter and, for a group that passes, of the other selector."""
        counted = [episode for episode in group if episode.available]
        inner = self._inner.weighed(group, keep) if isinstance(self._inner, Weighs) and self.passes(counted) else {}
        own = self.looks_at(counted)
        return {at: {**inner.get(at, {}), **own} for at, episode in enumerate(group) if episode.available}

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """See ``Observes``."""
        if isinstance(self._inner, Observes):
            self._inner.observe(outcomes)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the other selector, if it has one."""
        inner: Any = self._inner
        return {"of": inner.state_dict()} if hasattr(inner, "state_dict") else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a state."""
        inner: Any = self._inner
        if "of" in state:
            inner.load_state_dict(state["of"])

    def _lets(self, group: Group) -> bool:
        return self.passes([episode for episode in group if episode.available])
