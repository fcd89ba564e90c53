"""``kl``: the divergence from a reference model, by one of six estimators, which differ mainly in their gradients."""

# This module is longer than most parts because it has six estimators, three of them with special gradients.

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .tokens import Tensor, Tokens, bounded_exp

Estimator = Literal["k1", "k2", "k3", "k3+", "unbiased", "episode"]


@dataclass(frozen=True)
class Kl(CheckedOptions):
    r"""``coef`` times an estimate of $\operatorname{KL}(\text{policy}, \text{reference})$ at a token (Schulman 2020).

    The estimates of "Approximating KL divergence" are $k_1 = d$, $k_2 = \frac{d^2}{2}$ and $k_3 = \exp(-d) - 1 + d$
    with $d = \log \pi - \log \pi_\text{ref}$. On tokens sampled from the policy, the expected gradient of $k_2$ is the
    gradient of the divergence. The expected gradient of $k_1$ is zero, and the expected gradient of $k_3$ is the
    gradient of $\operatorname{KL}(\text{reference}, \text{policy})$ (arXiv 2512.21852). The estimates are divergences
    of single tokens: the effect of a token on the later tokens of its row does not count, except with ``"episode"``.

    Args:
        coef: Weight in the loss.
        estimator: ``"k1"``, ``"k2"`` and ``"k3"`` are defined above. ``"k3+"`` has the value of $k_3$ and the gradient
            of $k_2$ (verl). ``"unbiased"`` is $k_3$ times the ratio $\frac{\pi}{\pi_\text{old}}$; its expected gradient
            is the gradient of the divergence (DeepSeek-V3.2, arXiv 2512.02556). ``"episode"`` has the value of $k_1$,
            and the gradient of each log-probability is the sum of $d$ over this token and the policy's later tokens of
            the row. On episodes sampled from the policy, and without division by lengths, the expected gradient is that
            of the divergence between whole episodes, $\operatorname{KL}(\text{policy}, \text{reference})$ (Tang and
            Munos, arXiv 2506.09477). Its variance grows with the length.
    """

    coef: float = option(1e-3, least=0)
    estimator: Estimator = "k3"

    policy_gradient: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[LossInput]:
        """Names of the inputs that the term needs; see ``Term``."""
        return frozenset({"reference", "old"} if self.estimator == "unbiased" else {"reference"})

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return self.coef * divergence(tokens, _difference(tokens), self.estimator)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the divergence, always estimated with k3, independently of the loss's estimator."""
        return measured("kl", tokens, _difference(tokens))


def divergence(tokens: Tokens, difference: Tensor, estimator: Estimator) -> Tensor:
    """Estimate the divergence from another model at each token; see ``Kl``.

    Args:
        tokens: The micro-batch.
        difference: Log-probability under the policy minus log-probability under the other model, (B, T), 0 off the
            mask.
        estimator: Name of the estimator.
    """
    match estimator:
        case "k1":
            return difference
        case "k2":
            return _k2(difference)
        case "k3":
            return _k3(difference)
        case "k3+":
            return _k2(difference) + (_k3(difference) - _k2(difference)).detach()
        case "unbiased":
            return _k3(difference) * bounded_exp(tokens.log_ratio)
        case "episode":
            value = difference.detach()
            return value + value.flip(-1).cumsum(-1).flip(-1) * (difference - value)


def measured(name: str, tokens: Tokens, difference: Tensor) -> Figures:
    """Return the divergence from another model over the policy's tokens, estimated with k3, as the metric ``name``.

    Args:
        name: Name of the metric.
        tokens: The micro-batch.
        difference: See ``divergence``.
    """
    return {name: tokens.sum_and_count(_k3(difference.detach()))}


def _difference(tokens: Tokens) -> Tensor:
    if tokens.reference is None:
        raise ConfigurationError(
            "The loss term 'kl' needs the log-probabilities of a reference model, but the trainer did not "
            "compute them: if your own term calls kl, list 'reference' in its `needs`."
        )
    return (tokens.logp - tokens.reference).masked_fill(~tokens.mask, 0.0)


def _k2(difference: Tensor) -> Tensor:
    return difference.square() / 2


def _k3(difference: Tensor) -> Tensor:
    return bounded_exp(-difference) - 1 + difference


LOSSES.register("kl", Kl)
