"""``carft``: right answers of a group are drawn to one another, or to an expert's, and away from wrong ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Need
from .contrast import LIKE, UNLIKE
from .tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Carft(CheckedOptions):
    """coef times InfoNCE of the embeddings of a group's answers (CARFT, arXiv 2508.15868).

    For a row of a right answer, with s the cosine of its embedding and another's over ``temperature``: the mean over
    the answers that it is to be like of -log(e^s / (e^s + sum over wrong answers of e^s')); 0 for other rows, and where
    the group has none that is like it. What it is to be like are the group's expert answers (an annotated chain of
    thought), and where there is none, the other right ones. An embedding is the mean of the last layer over the tokens
    of the policy; the others' are those of the weights that sampled, without a gradient. Added to a policy gradient,
    with a small weight. The projection head and the masks of the authors' code are left out: this is the general form.

    Args:
        coef: Its weight in the loss.
        temperature: Smaller ones look at the nearest answers alone.
    """

    coef: float = option(0.01, least=0)
    temperature: float = option(0.1, above=0)

    needs: ClassVar[frozenset[Need]] = frozenset({"embedding"})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """See ``Term``."""
        embedding, peers, relations = tokens.embedding, tokens.peers, tokens.relations
        if embedding is None or peers is None or relations is None:
            raise ConfigurationError("The loss term carft needs the embeddings of rows; there are none.")
        norms = embedding.norm(dim=-1, keepdim=True) * peers.norm(dim=-1)
        scaled = (embedding[:, None] * peers).sum(-1) / norms.clamp(min=1e-9) / self.temperature
        like, unlike = relations == LIKE, relations == UNLIKE
        # A wrong answer counts against each right one; softplus of the difference is -log of the share.
        against = scaled.masked_fill(~unlike, -1e9).logsumexp(-1, keepdim=True)
        each = (against - scaled).logaddexp(scaled.new_zeros(())).masked_fill(~like, 0.0)
        row = each.sum(-1, keepdim=True) / like.sum(-1, keepdim=True).clamp(min=1)
        loss: Tensor = (self.coef * row).expand(tokens.logp.shape)
        return loss


LOSSES.register("carft", Carft)
