"""``opd``: on-policy distillation: moves the policy towards a teacher at every token that it samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .kdrl import to_teacher
from .kl import measured
from .tokens import RatioAnchor, Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class Opd(CheckedOptions):
    r"""$-\text{coef} \operatorname{sg}(\log \pi_\text{teacher} - \log \pi) \, \text{ratio}$: the reverse KL.

    The reverse KL of each token, without a gradient ($\operatorname{sg}$), acts as its advantage (arXiv 2306.08543). On
    tokens sampled from the policy, the expected gradient is the gradient of
    $\operatorname{KL}(\text{policy}, \text{teacher})$. The term does not use the reward, so every episode is trained
    on, also in groups with equal rewards. MiniLLM (arXiv 2306.08543) and GKD (arXiv 2306.13649) distil on the student's
    own texts; Tinker's on-policy distillation and prime-rl's ``opd`` use the reverse KL as the advantage, as here. If
    the teacher is the policy with the solution in its prompt, this is ``opsd`` (arXiv 2601.18734):
    ``model.teacher=self`` with ``model.teacher_prompt``. Needs ``model.teacher``. Not covered: divergences over the
    whole vocabulary (GKD's generalized Jensen-Shannon), which need the teacher's whole distribution.

    Args:
        coef: Weight in the loss.
        bound: Maximum absolute value of a token's log-ratio to the teacher; ``None`` for no bound. Without a bound, a
            few tokens of style, which a teacher with the solution would write differently, can outweigh all others
            (arXiv 2601.18734).
        drop_below: Maximum decrease of a token's probability since sampling; tokens with a larger decrease are
            excluded. prime-rl uses 0.2. ``None`` excludes none.
        square: Weight of $(\log \text{ratio})^2$, which keeps the policy close to the sampling policy; prime-rl uses
            1e-3.
        anchor: Whether the ratio uses the trainer's probabilities at sampling time, ``"old"``, or the engine's,
            ``"sampled"``.
    """

    coef: float = option(1.0, least=0)
    bound: float | None = option(None, above=0)
    drop_below: float | None = option(None, above=0, most=1)
    square: float = option(0.0, least=0)
    anchor: RatioAnchor = "old"

    policy_gradient: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[LossInput]:
        """Names of the inputs that the term needs; see ``Term``."""
        return frozenset({"teacher", "old"} if self.anchor == "old" else {"teacher"})

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        signal = -to_teacher(tokens).detach()
        if self.bound is not None:
            signal = signal.clamp(-self.bound, self.bound)
        log_ratio = tokens.log_ratio_to(self.anchor)
        loss = -signal * bounded_exp(log_ratio)
        if self.drop_below is not None:
            before = tokens.old if self.anchor == "old" else tokens.sampled
            fallen = (before.clamp(max=0.0).exp() - tokens.logp.detach().exp()) > self.drop_below
            loss = loss.masked_fill(fallen, 0.0)
        return self.coef * (loss + self.square * log_ratio.square())

    def figures(self, tokens: Tokens) -> Figures:
        """Return the divergence from the teacher, estimated with k3 (see ``Kl``)."""
        return measured("teacher_kl", tokens, to_teacher(tokens))


LOSSES.register("opd", Opd)
