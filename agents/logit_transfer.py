"""``logit_transfer``: adds RL's effect on a small model's logits to a large model's logits. RAST (arXiv 2506.15710).

The logits of each token are ``z = z_large + lambda (z_small_trained - z_small_base)``, with lambda = 1; the models
share a vocabulary. Temperature and nucleus sampling are applied to z. Example: z = [1,0,0] + ([0,2,0] - [0,1,0]) =
[1,1,0]. With lambda = 0 the output equals the large model's output, token for token. ``usage`` counts the sampled
tokens; each of them takes a forward pass of all three models.
"""

from __future__ import annotations

from typing import Annotated, Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.models.forward import cache_argument

from ._local_model import LocalModel, LocalTurns, local_model
from .base import AGENTS


class LogitShift:
    """A ``LogitsProcessor`` that adds the difference of two small models' logits to a large model's, for one sequence.

    Args:
        trained: The model whose logits are added.
        base: The model whose logits are subtracted.
        strength: lambda, the factor of the difference.
    """

    def __init__(self, trained: Any, base: Any, strength: float) -> None:
        self._models, self._strength = (trained, base), strength
        self._arguments = [cache_argument(model) for model in self._models]
        self._caches: list[Any] = [None, None]
        self._read = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the shifted logits.

        Args:
            input_ids: Ids of all tokens so far, (1, T).
            scores: Logits of the large model, (1, V). Entries that the small models do not have (padding of the
                vocabulary) are unchanged.
        """
        if not self._strength:
            return scores
        trained, base = (self._logits(place, input_ids) for place in range(2))
        self._read = input_ids.shape[1]
        width = min(scores.shape[-1], trained.shape[-1], base.shape[-1])
        shifted = scores.clone()
        shifted[:, :width] += self._strength * (trained[:, :width] - base[:, :width]).to(scores)
        return shifted

    def _logits(self, place: int, input_ids: Any) -> Any:
        new, argument = input_ids[:, self._read :], self._arguments[place]
        out = self._models[place](input_ids=new, use_cache=True, **{argument: self._caches[place]})
        self._caches[place] = getattr(out, argument)
        return out.logits[:, -1, :]


class LogitTransfer(LocalTurns):
    """Samples from a large model whose logits are shifted by the effect of training on a small model (RAST).

    Args:
        model: Folder or hub name of the large model.
        trained: Folder or hub name of the small model after reinforcement learning.
        base: Folder or hub name of the small model before reinforcement learning.
        strength: lambda, the factor of the added difference; 0 uses only the large model.
        max_tokens: Maximum number of tokens of one turn.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Probability mass of nucleus sampling.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the large model's own; the small models receive
            the same ids.

    Raises:
        ConfigurationError: There is no such model, the vocabularies differ, or an option is out of its range.
    """

    @checked
    def __init__(
        self,
        model: str,
        trained: str,
        base: str,
        strength: float = 1.0,
        max_tokens: Count = 1024,
        temperature: Annotated[float, Rule(least=0)] = 1.0,
        top_p: Annotated[float, Rule(above=0, most=1)] = 1.0,
        chat_template: str | None = None,
    ) -> None:
        large = local_model(model, chat_template)
        self._small = [local_model(path, chat_template) for path in (trained, base)]
        for path, small in zip((trained, base), self._small, strict=True):
            _require_the_same(model, large, path, small)
        self._strength = strength
        super().__init__(large, {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p})

    def processor(self) -> LogitShift:
        """Return a processor that shifts the logits of one turn."""
        trained, base = self._small
        return LogitShift(trained.model, base.model, self._strength)


def _require_the_same(name: str, large: LocalModel, other_name: str, small: LocalModel) -> None:
    one, other = large.vocabulary, small.vocabulary
    if one == other:
        return
    differing = sorted(token for token in one.keys() | other.keys() if one.get(token) != other.get(token))
    raise ConfigurationError(
        f"The models {name!r} and {other_name!r} have different vocabularies ({len(one)} and {len(other)} tokens; "
        f"{len(differing)} differ, such as {differing[0]!r}), so their logits cannot be added."
    )


AGENTS.register("logit_transfer", LogitTransfer)
