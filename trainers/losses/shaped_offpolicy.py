"""``shaped_offpolicy``: refined answers beside sampled ones, by a shaped probability (Critique-GRPO)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Need
from .ppo_clip import PpoClip
from .tokens import LARGEST_LOG, Tokens

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ShapedOffpolicy(CheckedOptions):
    """-ratio A on sampled rows, without a clip; -f(pi) A on off-policy ones, f(pi) = pi / (pi + gamma).

    Critique-GRPO (arXiv 2506.03106, section 3.3). No probability under which the off-policy row was written is in f: it
    was drawn with a critique in its prompt, and trains without. The gradient, gamma pi / (pi + gamma)^2 times that of
    log pi, is largest at pi = gamma (.25 at .1 with gamma = .1) and falls on both sides (.083 at .01 and at 1), so
    that tokens that the policy would hardly write count more than in a plain ratio. Off-policy are the rows with the
    column ``off_policy``, as of refined answers. The shaping is LUFFY's (arXiv 2504.14945).

    Args:
        gamma: Where f is one half.
        low: As of ``ppo_clip``, on sampled rows; the authors clip neither side.
        high: As of ``ppo_clip``.
    """

    gamma: float = option(0.1, above=0)
    low: float | None = option(None, least=0, most=1)
    high: float | None = option(None, least=0)

    needs: ClassVar[frozenset[Need]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Tensor:
        """See ``Term``."""
        now = tokens.logp.clamp(-LARGEST_LOG, 0.0).exp()
        shaped = -now / (now + self.gamma) * tokens.advantage
        sampled = PpoClip(low=self.low, high=self.high)(tokens)
        return shaped.where(tokens.column("off_policy") > 0.5, sampled)


LOSSES.register("shaped_offpolicy", ShapedOffpolicy)
