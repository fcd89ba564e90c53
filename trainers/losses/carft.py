"""``carft``: a contrastive term that pulls correct answers of a group together and away from wrong answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, LossInput
from .contrast import LIKE, UNLIKE
from .tokens import Tensor, Tokens


@dataclass(frozen=True)
class Carft(CheckedOptions):
    r"""``coef`` times InfoNCE of the embeddings of a group's answers (CARFT, arXiv 2508.15868).

    Let $s(a, b)$ be the cosine similarity of the embeddings of two answers, divided by ``temperature``. For a correct
    answer $a$, the loss is the mean over its positives $p$ of
    $-\log \frac{e^{s(a, p)}}{e^{s(a, p)} + \sum_w e^{s(a, w)}}$, where $w$ is every wrong answer. For other rows, and
    in groups without positives, the loss is 0. The positives are the group's expert answers (annotated chains of
    thought) or, if there are none, the other correct answers. An embedding is the mean of the last layer over the
    policy's tokens; the embeddings of $p$ and $w$ are computed with the weights that sampled them, without a gradient.
    Add the term to a policy gradient with a small weight. The defaults are the authors'; their projection head, masks
    and upper limit of $s$ are omitted.

    Args:
        coef: Weight in the loss.
        temperature: Smaller values focus on the nearest answers.
    """

    coef: float = option(0.1, least=0)
    temperature: float = option(0.2, above=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"embedding"})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        embedding, peers, relations = tokens.embedding, tokens.peers, tokens.relations
        if embedding is None or peers is None or relations is None:
            raise ConfigurationError(
                "The loss term 'carft' needs the embedding of each row, but the trainer did not compute it: if "
                "your own term calls carft, list 'embedding' in its `needs`."
            )
        norms = embedding.norm(dim=-1, keepdim=True) * peers.norm(dim=-1)
        scaled = (embedding[:, None] * peers).sum(-1) / norms.clamp(min=1e-9) / self.temperature
        like, unlike = relations == LIKE, relations == UNLIKE
        # A wrong answer counts against each correct one; softplus of the difference is -log of the share.
        against = scaled.masked_fill(~unlike, -1e9).logsumexp(-1, keepdim=True)
        each = (against - scaled).logaddexp(scaled.new_zeros(())).masked_fill(~like, 0.0)
        row = each.sum(-1, keepdim=True) / like.sum(-1, keepdim=True).clamp(min=1)
        loss: Tensor = (self.coef * row).expand(tokens.logp.shape)
        return loss


LOSSES.register("carft", Carft)
