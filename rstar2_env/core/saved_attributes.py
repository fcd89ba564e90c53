"""``SavedAttributes``: base class of a trainer's components that save some of their attributes in checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np


class SavedAttributes:
    """A component that saves, in a checkpoint, the values of the attributes that its subclass names in ``saved``.

    The value of such an attribute is JSON-compatible, a NumPy array, or an object with a state of its own. The keys of
    the saved state are the attributes' names without their leading underscore.
    """

    saved: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes to save."""

    def state_dict(self) -> dict[str, Any]:
        """Return the values of the saved attributes, as JSON-compatible copies."""
        return {name.removeprefix("_"): _plain(getattr(self, name)) for name in self.saved}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the attributes from a state that ``state_dict`` returned."""
        for name in self.saved:
            own, value = getattr(self, name), state[name.removeprefix("_")]
            if hasattr(own, "load_state_dict"):
                own.load_state_dict(value)
            else:
                setattr(self, name, np.array(value) if isinstance(own, np.ndarray) else copy.deepcopy(value))


def _plain(value: Any) -> Any:
    if hasattr(value, "state_dict"):
        return value.state_dict()
    return value.tolist() if isinstance(value, np.ndarray) else copy.deepcopy(value)
