"""The language-model head on a CPU: computes log-probabilities of tokens from hidden states, tile by tile.

Without Triton, TRL's fused head also computes log-probabilities of tokens without a label, which the loss does not
need. Its tiles have 4,096 tokens and 32,768 vocabulary entries; a tile needs a dozen temporary tensors of its size, and
the backward pass repeats each matrix product. Here a tile covers only few tokens, so that the temporary tensors stay
small, and the whole vocabulary, so that torch's softmax can be used. If all tiles together have few tokens, their
log-probabilities are kept for the backward pass; otherwise they are computed again, tile by tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ....plan.training_memory import CPU_KEPT_BYTES, CPU_TILE_BYTES


class CpuLogProbs(torch.autograd.Function):
    """Log-probabilities of target tokens, with the signature and the outputs of TRL's ``ChunkedLogProbFunction``.

    Differences: the fourth output is the mean of the log-probabilities, not of the logits; each tile spans the whole
    vocabulary. Only the log-probabilities and the entropy have gradients.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float,
        chunk_size: int,
        softcap: float | None = None,
        logit_scale: float = 1.0,
        outputs: tuple[str, ...] = (),
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
        """Compute the outputs for hidden states, (N, H), a head, (V, H), and target tokens, (N,).

        Returns:
            For each token: the log-probability, the entropy, the logarithm of the sum of squared probabilities, the
            mean log-probability, and whether the target is the most likely token, (N,) each. All but the first are
            ``None`` unless ``outputs`` names them.
        """
        ctx.set_materialize_grads(False)
        low = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else hidden.dtype
        ctx.head = _Head(hidden.detach().to(low), weight.detach().to(low), bias, temperature, softcap, logit_scale)
        count, words = targets.numel(), weight.shape[0]
        keeps = any(ctx.needs_input_grad) and 4 * count * words <= CPU_KEPT_BYTES
        ctx.kept = [] if keeps else None
        wanted: dict[str, list[Tensor]] = {name: [] for name in ("logp", "log_z", *outputs)}
        for at in _tiles(count, words):
            logits = ctx.head.logits(at)
            own = targets[at, None]
            logp = logits.log_softmax(-1)
            of_target = logp.gather(-1, own)
            wanted["logp"].append(of_target[:, 0])
            wanted["log_z"].append((logits.gather(-1, own) - of_target)[:, 0])
            if "is_top1" in wanted:
                wanted["is_top1"].append(logits.argmax(-1) == targets[at])
            if "mean_logits" in wanted:
                wanted["mean_logits"].append(logp.mean(-1))
            if "entropy" in wanted or "log_sum_sq_probs" in wanted:
                p = torch.exp(logp, out=logits)
                if "entropy" in wanted:
                    wanted["entropy"].append(-torch.linalg.vecdot(p, logp))
                if "log_sum_sq_probs" in wanted:
                    wanted["log_sum_sq_probs"].append(torch.linalg.vecdot(p, p).log())
            if keeps:
                ctx.kept.append(logp)
        exact = torch.promote_types(hidden.dtype, torch.float32)
        found = {
            name: torch.cat(parts) if parts else hidden.new_zeros(0, dtype=exact) for name, parts in wanted.items()
        }
        ctx.save_for_backward(hidden, weight, bias, targets, found["log_z"], found.get("entropy"))
        squares, means, top = (found.get(name) for name in ("log_sum_sq_probs", "mean_logits", "is_top1"))
        ctx.mark_non_differentiable(*(one for one in (squares, means, top) if one is not None))
        return found["logp"], found.get("entropy"), squares, means, top

    @staticmethod
    def backward(ctx: Any, to_logp: Tensor | None, to_entropy: Tensor | None, *_: Any) -> Any:
        """Return the gradients with respect to the hidden states, the head and its bias.

        With logits z, probabilities p, entropy H, and 1[t] the one-hot vector of target token t:
        d log p(t) / dz = 1[t] - p, and dH / dz = -p (log p + H).
        """
        hidden, weight, bias, targets, log_z, entropy = ctx.saved_tensors
        head: _Head = ctx.head
        of_hidden, of_weight, of_bias = (
            torch.zeros(one.shape, dtype=log_z.dtype) if needed else None
            for one, needed in zip((hidden, weight, bias), ctx.needs_input_grad[:3], strict=True)
        )
        for number, at in enumerate(_tiles(targets.numel(), weight.shape[0])):
            logp = head.logits(at).log_softmax(-1) if ctx.kept is None else ctx.kept[number]
            grad = logp.exp()
            if to_entropy is not None:
                # -p (g + gH (log p + H)); g and gH: incoming gradients of the log-probability and the entropy.
                factor = (logp + entropy[at, None]).mul_(to_entropy[at, None])
                grad.mul_(factor if to_logp is None else factor.add_(to_logp[at, None])).neg_()
            elif to_logp is not None:
                grad.mul_(-to_logp[at, None])
            if to_logp is not None:
                grad.scatter_add_(-1, targets[at, None], to_logp[at, None].to(grad.dtype))
            grad = head.through(grad, logp, log_z[at]).to(head.hidden.dtype)
            if of_hidden is not None:
                of_hidden[at] = grad @ head.weight
            if of_weight is not None:
                _add_product(of_weight, grad.t(), head.hidden[at])
            if of_bias is not None:
                of_bias += grad.sum(0, dtype=of_bias.dtype)
        given = zip((of_hidden, of_weight, of_bias), (hidden, weight, bias), strict=True)
        return *(None if grad is None else grad.to(one.dtype) for grad, one in given), *[None] * 6


class _Head:
    """Computes the logits of a tile of tokens, and passes gradients back through the logits' soft cap and scaling."""

    def __init__(
        self, hidden: Tensor, weight: Tensor, bias: Tensor | None, temperature: float, cap: float | None, scale: float
    ) -> None:
        self.hidden, self.weight, self._bias = hidden, weight, None if bias is None else bias.detach().to(weight.dtype)
        self._cap, self._scale, self._cold = cap, scale, 1 / temperature

    def logits(self, at: slice) -> Tensor:
        """Return the logits of the tokens at a slice, divided by the temperature, in at least float32, (n, V)."""
        product = self.hidden[at] @ self.weight.t()
        if self._bias is not None:
            product += self._bias
        found = product if product.dtype is torch.float64 else product.float()
        if self._cap is not None:
            return found.mul_(self._scale / self._cap).tanh_().mul_(self._cap * self._cold)
        return found if self._scale * self._cold == 1 else found.mul_(self._scale * self._cold)

    def through(self, grad: Tensor, logp: Tensor, log_z: Tensor) -> Tensor:
        """Convert ``grad``, in place, from the gradient of the logits to the gradient of ``hidden @ weight.T + bias``.

        The logits are the log-probabilities ``logp``, (n, V), plus the logarithms of their normalizers ``log_z``, (n,).
        """
        if self._cap is not None:
            level = (logp + log_z[:, None]).div_(self._cap * self._cold)  # the hyperbolic tangent
            grad.mul_(level.square_().neg_().add_(1))
        return grad if self._scale * self._cold == 1 else grad.mul_(self._scale * self._cold)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add ``left @ right`` to ``total`` in place; if ``total`` has another precision, round only the product."""
    if left.dtype is total.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


def _tiles(count: int, words: int) -> Iterator[slice]:
    """Divide ``count`` tokens into tiles of nearly equal size, given the size of the vocabulary, ``words``."""
    most = max(1, CPU_TILE_BYTES // (4 * words))
    parts = -(-count // most)
    for part in range(parts):
        yield slice(count * part // parts, count * (part + 1) // parts)
