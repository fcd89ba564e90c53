"""``gdpo``: normalizes every reward component separately before adding them: GDPO (arXiv 2601.05242).

A_c = (r_c - mean) / (std + eps) over the group for each component c; A = sum of weight_c A_c; then A is normalized over
the batch. If the sum of the components is normalized instead (``group_norm``: TRL's ``sum_then_normalize``), different
mixtures of components with the same sum get the same advantage. With ``gdpo`` their advantages differ. Use it for a
reward with several components, such as correctness and format.
"""

# This module is longer than most parts because it checks the components of every episode and normalizes over all
# processes.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, FloatArray, centred, deviation, moments
from .tokens import normalized, scaled


@dataclass(frozen=True)
class Gdpo(CheckedOptions):
    r"""The sum of the group-normalized components of the reward, normalized over the batch: GDPO (arXiv 2601.05242).

    For a component $c$, $A_c = \frac{r_c - \text{mean}}{\text{std} + \text{eps}}$ over the group. The advantage is
    $\sum_c \text{weight}_c A_c$, normalized over the batch. The components are defined by the trainer's option
    ``reward``. If a component has no score for an episode, it contributes 0. The component's own ``weight`` cancels
    out, except for its sign: use ``weights`` here.

    Args:
        weights: Factors on the normalized components, by name; 1 by default.
        whiten: Normalization over the batch: over ``"episodes"``, as in the paper and in TRL
            (``normalize_then_sum``), over all policy ``"tokens"``, as in verl, or ``"none"``.
        eps: Added to the deviations; 1e-4 as in TRL (verl adds 1e-6).
    """

    least: ClassVar[int] = 2
    of_batch: ClassVar[bool] = True
    weights: Mapping[str, float] = field(default_factory=dict)
    whiten: Literal["episodes", "tokens", "none"] = "episodes"
    eps: float = option(1e-4, least=0)

    @property
    def components(self) -> Sequence[str]:
        """Names of the configured components; a trainer rejects names that its reward does not have."""
        return tuple(self.weights)

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``.

        Raises:
            ConfigurationError: ``weights`` names a component that no episode has.
        """
        self._check(groups, ranks)
        values: Advantages = [list(map(float, self._summed(group))) for group in groups]
        if self.whiten == "tokens":
            return normalized(groups, values, ranks, self.eps)
        if self.whiten == "episodes":
            mean, spread = moments(np.array([value for own in values for value in own], dtype=np.float64), ranks)
            return [[scaled(value, mean, spread, self.eps) for value in own] for own in values]
        return values

    def _summed(self, group: Sequence[Episode]) -> FloatArray:
        total = np.zeros(len(group))
        scores = [_components(episode) for episode in group]
        for name in sorted(set().union(*scores)):
            scored = [place for place, own in enumerate(scores) if name in own]
            found = np.array([scores[place][name] for place in scored], dtype=np.float64)
            own = centred(found)
            if own.any():
                total[scored] += self.weights.get(name, 1.0) * own / (deviation(found) + self.eps)
        return total

    def _check(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> None:
        if not self.weights:
            return
        own = {name for group in groups for episode in group for name in _components(episode)}
        known = sorted(set().union(*ranks.gather(own)))
        if known and (unknown := sorted(set(self.weights) - set(known))):
            raise ConfigurationError(
                f"The option advantage.weights names {', '.join(unknown)}, but the components of the "
                f"reward are {', '.join(known)}: use these names.",
                option="advantage.weights",
            )


def _components(episode: Episode) -> dict[str, float]:
    """Return an episode's score per reward component, without the parts of ``return`` (``return/<name>``)."""
    own = {name: value for name, value in episode.rewards.items() if not name.startswith("return/")}
    return own or {"return": episode.reward}


ADVANTAGES.register("gdpo", Gdpo)
