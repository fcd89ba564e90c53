"""``kdrl``: distillation combined with reinforcement learning, on the policy's own tokens (KDRL, arXiv 2506.02208)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .kl import Estimator, divergence, measured
from .tokens import Tensor, Tokens


@dataclass(frozen=True)
class Kdrl(CheckedOptions):
    r"""``coef`` times $k_2$ of $\operatorname{KL}(\text{policy}, \text{teacher})$ at tokens of wrong answers (KDRL).

    The term is added to a policy gradient. With $d = \log \pi - \log \pi_\text{teacher}$, $k_2 = \frac{d^2}{2}$. On
    tokens sampled from the policy, the expected gradient of $k_2$ equals the gradient of the divergence; the expected
    gradient of $k_3$ does not (arXiv 2506.02208, section 3). Only wrong answers are pulled towards the teacher (the
    paper's reward-guided masking), since correct answers are already rewarded. The hook ``kl_schedule`` with
    ``term=kdrl`` lowers the coefficient from 5e-3 by 5e-5 per step to 1e-3. Needs ``model.teacher`` and the column
    ``correct``, which every row of a run has.

    Args:
        coef: Weight in the loss; the paper starts with 5e-3.
        estimator: See ``kl``; the paper compares $k_2$ with $k_3$ and uses $k_2$.
        on: The answers to distil: only ``"wrong"`` answers, or ``"all"`` answers.
    """

    coef: float = option(5e-3, least=0)
    estimator: Estimator = "k2"
    on: Literal["wrong", "all"] = "wrong"

    policy_gradient: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[LossInput]:
        """Names of the inputs that the term needs; see ``Term``."""
        return frozenset({"teacher", "old"} if self.estimator == "unbiased" else {"teacher"})

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        found = self.coef * divergence(tokens, to_teacher(tokens), self.estimator)
        return found if self.on == "all" else found.masked_fill(tokens.column("correct") > 0.5, 0.0)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the divergence from the teacher, always over all tokens and estimated with k3."""
        return measured("teacher_kl", tokens, to_teacher(tokens))


def to_teacher(tokens: Tokens) -> Tensor:
    """Return log pi - log pi_teacher of each token, (B, T), 0 off the mask.

    Raises:
        ConfigurationError: The run has no teacher.
    """
    if tokens.teacher is None:
        raise ConfigurationError(
            "A term of the loss needs the log-probabilities of a teacher model: set model.teacher=FOLDER."
        )
    return (tokens.logp - tokens.teacher).masked_fill(~tokens.mask, 0.0)


LOSSES.register("kdrl", Kdrl)
