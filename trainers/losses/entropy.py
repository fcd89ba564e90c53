"""``entropy`` and ``adaptive_entropy``: a bonus on the entropy of the policy, fixed or steered to a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .tokens import Tensor, Tokens


@dataclass(frozen=True)
class Entropy(CheckedOptions):
    r"""$-\text{coef} \, H$, with the entropy $H$ of the distribution at each token (A3C, arXiv 1602.01783, section 4).

    Args:
        coef: Weight in the loss; a negative value lowers the entropy.
    """

    coef: float = 1e-3

    needs: ClassVar[frozenset[LossInput]] = frozenset({"entropy"})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return -self.coef * _entropy(tokens)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the entropy, in nats."""
        return {"entropy": tokens.sum_and_count(_entropy(tokens).detach())}


@dataclass
class AdaptiveEntropy(CheckedOptions):
    """An entropy bonus that acts only while the entropy is at most a target: Skywork-OR1 (arXiv 2505.22312).

    The loss of a token is $-c H$ with the coefficient $c$ and the entropy $H$ of its distribution. After a step in
    which the mean entropy of all policy tokens was below the target, the coefficient increases by ``delta``; if the
    entropy was above the target, the coefficient decreases by ``delta``. A step uses the entropy of the previous step,
    so the first step has no bonus.

    Args:
        target: Target entropy, in nats.
        delta: Change of the coefficient per step.
        start: Initial value of the coefficient. The first step has no bonus but changes this value.
        most: Maximum coefficient; the minimum is 0.
    """

    target: float = option(0.2, least=0)
    delta: float = option(0.005, least=0)
    start: float = option(0.0, least=0)
    most: float = option(1.0, least=0)
    _coef: float = field(init=False, repr=False)
    _active: bool = field(init=False, repr=False, default=False)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"entropy"})
    policy_gradient: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check every option and set the initial state.

        Raises:
            ConfigurationError: An option is out of its range.
        """
        self._coef = self.start
        super().__post_init__()

    @property
    def coef(self) -> float:
        """Coefficient of this step: 0 while the entropy is above the target."""
        return self._coef if self._active else 0.0

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return -self.coef * _entropy(tokens)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the entropy, in nats, and the coefficient."""
        count = tokens.mask.sum()
        return {"entropy": tokens.sum_and_count(_entropy(tokens).detach()), "entropy_coef": (self.coef * count, count)}

    def observe(self, figures: Mapping[str, tuple[float, float]]) -> None:
        """Adapt the coefficient to the metrics of an optimizer step, over all processes; see ``Adapts``."""
        found = figures.get("entropy")
        if found is None or not found[1]:
            return
        entropy = found[0] / found[1]
        self._active = entropy <= self.target
        change = self.delta if entropy < self.target else -self.delta if entropy > self.target else 0.0
        self._coef = min(max(self._coef + change, 0.0), self.most)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values; see ``Adapts``."""
        return {"coef": self._coef, "active": self._active}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned; see ``Adapts``."""
        self._coef, self._active = float(state["coef"]), bool(state["active"])


def _entropy(tokens: Tokens) -> Tensor:
    if tokens.entropy is None:
        raise ConfigurationError(
            "A loss term needs the entropy of the policy at each token, but the trainer did not compute it: "
            "list 'entropy' in the `needs` of the term."
        )
    return tokens.entropy


LOSSES.register("entropy", Entropy)
LOSSES.register("adaptive_entropy", AdaptiveEntropy)
