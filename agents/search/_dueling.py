"""Q-network of the agent ``navigator``, in NumPy, with 2,566 parameters; ``_navigator_training`` trains its weights.

A dueling network of three layers: the seven scores that the model gives its own work become 32 features, from which two
heads with a hidden layer each compute a value V and five advantages A: ``Q(s, a) = V(s) + A(s, a) - mean_b A(s, b)``
(Wang et al., arXiv 1511.06581).
The parameters are 7*32+32 = 256 for the first layer, 32*32+32 = 1,056 for the hidden layer of each head, and 33 and 165
for the outputs of the heads: 2,566 in total, as RL of Thoughts states.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError

SCORES, ACTIONS, _WIDE = 7, 5, 32
SHAPES: Mapping[str, tuple[int, ...]] = {
    "features.weight": (_WIDE, SCORES),
    "features.bias": (_WIDE,),
    "value.0.weight": (_WIDE, _WIDE),
    "value.0.bias": (_WIDE,),
    "value.2.weight": (1, _WIDE),
    "value.2.bias": (1,),
    "advantage.0.weight": (_WIDE, _WIDE),
    "advantage.0.bias": (_WIDE,),
    "advantage.2.weight": (ACTIONS, _WIDE),
    "advantage.2.bias": (ACTIONS,),
}
"""Shape of every weight, keyed by the name of the torch parameter."""

NetworkWeights = Mapping[str, np.ndarray[Any, Any]]


def q_values(weights: NetworkWeights, scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the Q-value of each of the five reasoning blocks among which the agent ``navigator`` chooses.

    Args:
        weights: Weights of the network, keyed by the names in ``SHAPES``.
        scores: The seven scores that the model gives its own work, from 1 to 3, shape (..., 7).

    Returns:
        The Q-values, shape (..., 5).
    """
    hidden = np.maximum(0.0, _linear(weights, "features", (np.asarray(scores, np.float32) - 2.0)))
    value, advantage = (
        _linear(weights, f"{head}.2", np.maximum(0.0, _linear(weights, f"{head}.0", hidden)))
        for head in ("value", "advantage")
    )
    worth: np.ndarray[Any, Any] = value + advantage - advantage.mean(-1, keepdims=True)
    return worth


def _linear(weights: NetworkWeights, name: str, inputs: np.ndarray[Any, Any]) -> Any:
    return inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def save(weights: NetworkWeights, file: str | Path) -> None:
    """Write weights as an ``.npz`` file."""
    with Path(file).open("wb") as stream:
        np.savez(stream, **dict[str, Any](weights))


def load(file: str | Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read weights that ``save`` wrote.

    Raises:
        ConfigurationError: The file cannot be read, or the names or shapes of its arrays differ from ``SHAPES``.
    """
    try:
        with np.load(file, allow_pickle=False) as stored:
            found = {name: np.asarray(stored[name], np.float32) for name in stored.files}
    except (OSError, ValueError, EOFError) as error:
        raise ConfigurationError(
            f"The file {file} of the option `weights` cannot be read: {error}.", option="weights"
        ) from error
    shapes = {name: value.shape for name, value in found.items()}
    if shapes != dict(SHAPES):
        raise ConfigurationError(
            f"The file {file} of the option `weights` does not contain the weights of a navigator: expected "
            f"{dict(SHAPES)}, not {shapes}. Create them with train_navigator.",
            option="weights",
        )
    return found
