"""What an advantage estimator is: it turns the rewards of each group into the advantages of its episodes.

An estimator takes the rewards of the selected episodes, one array per group, and returns arrays of the same shapes.
Episodes that ended as ``unavailable`` are never among them, so they affect no mean and no standard deviation.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.own_code import Shape
from rstar2_env.core.registry import Registry

Rewards = NDArray[np.float64]


class Advantage(Protocol):
    """Turns the rewards of each group into the advantages of its episodes."""

    def __call__(self, groups: Sequence[Rewards]) -> list[Rewards]:
        """Return the advantages of each group; every array has the shape of its rewards, (episodes,)."""
        ...


ADVANTAGES: Registry[Advantage] = Registry(
    "advantage",
    "rstar2_env.trainers.advantages",
    "rstar2_env.advantages",
    shape=Shape(inspect.isfunction, "a function of the groups' rewards"),
)
