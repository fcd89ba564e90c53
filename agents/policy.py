"""``policy``: a transformers model in this process as an agent; outer agents can use it instead of an endpoint."""

from __future__ import annotations

from typing import Annotated

from rstar2_env.core.options.declare import Count, Rule, checked

from ._local_model import LocalTurns, local_model
from .base import AGENTS


class LocalPolicy(LocalTurns):
    """Plays with a transformers model in this process, token for token as in training, one turn at a time.

    Args:
        model: Folder or hub name of the model.
        max_tokens: Maximum number of tokens of one turn.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Probability mass of nucleus sampling.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.

    Raises:
        ConfigurationError: There is no such model, or an option is out of its range.
    """

    @checked
    def __init__(
        self,
        model: str,
        max_tokens: Count = 1024,
        temperature: Annotated[float, Rule(least=0)] = 1.0,
        top_p: Annotated[float, Rule(above=0, most=1)] = 1.0,
        chat_template: str | None = None,
    ) -> None:
        sampling = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p}
        super().__init__(local_model(model, chat_template), sampling)


AGENTS.register("policy", LocalPolicy)
