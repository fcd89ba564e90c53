"""``opsm``: excludes wrong answers that the policy has already moved away from."""

# This module is longer than most parts because a second correction can be nested in it.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.options.parts import make_part

from .base import CORRECTIONS, Adapts, Correction, Figures, LossInput, Measures
from .tokens import RatioAnchor, Tensor, Tokens


@dataclass(frozen=True)
class OffPolicySequenceMask(CheckedOptions):
    r"""0 where $A < 0$ and the row's mean of $\log \mu - \log \pi$ is above ``delta``, else 1: OPSM.

    The formula is equation 9 of arXiv 2512.02556. The mean estimates the divergence of the policy from the sampling
    policy, due to updates or to engine-trainer mismatch. A mistake that the policy would hardly repeat is excluded: the
    policy learns nothing from it, and lowering its probability further destabilizes training. Correct answers are
    always trained on. Use the correction for rows that are trained on several times. The paper does not state
    ``delta``: 0.5 is the example in TRL's documentation, and slime uses 1e-4 against the trainer's own probabilities
    (``anchor=old``).

    Args:
        delta: Largest mean at which a row is kept, in nats per token.
        anchor: The probabilities used as $\mu$.
        level: Whether the mean is over a turn or a row; the paper uses ``sequence``.
        then: A second correction; its weights multiply the mask: ``truncate``, ``(mask:low=0.3,level=turn)``.
    """

    delta: float = option(0.5, above=0)
    anchor: RatioAnchor = "sampled"
    level: Literal["turn", "sequence"] = "sequence"
    then: Any = "none"
    _then: Correction = field(init=False, repr=False)

    reads_advantage: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: An option is out of its range.
            UnknownNameError: The correction ``then`` does not exist.
        """
        super().__post_init__()
        object.__setattr__(self, "_then", make_part(CORRECTIONS, self.then))

    @property
    def needs(self) -> frozenset[LossInput]:
        """Names of the inputs that the correction needs; see ``Correction``."""
        return self._then.needs | frozenset({"old"} if self.anchor == "old" else ())

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the weight of each token, (B, T), without a gradient; 0 drops the token; see ``Correction``."""
        away = tokens.pooled(-tokens.log_ratio_to(self.anchor).detach(), self.level)
        return self._then(tokens).masked_fill((tokens.advantage < 0) & (away > self.delta), 0.0)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the metrics of the correction ``then``; see ``Measures``."""
        return self._then.figures(tokens) if isinstance(self._then, Measures) else {}

    def observe(self, figures: Mapping[str, tuple[float, float]]) -> None:
        """Pass the figures to the correction ``then``, if it adapts; see ``Adapts``."""
        if isinstance(self._then, Adapts):
            self._then.observe(figures)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the correction ``then``, if it has a state."""
        return self._then.state_dict() if isinstance(self._then, Adapts) else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned."""
        if isinstance(self._then, Adapts):
            self._then.load_state_dict(state)


CORRECTIONS.register("opsm", OffPolicySequenceMask)
