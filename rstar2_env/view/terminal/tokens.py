"""Shows the tokens of an episode in a terminal, coloured by their probability under the policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from rstar2_env.core.text import harmless
from rstar2_env.view.terminal.sanitize import safe_text

_SHADES = ((0.9, "green"), (0.5, "cyan"), (0.1, "yellow"), (0.0, "red"))
"""Colours of tokens, each with the lowest probability of a token in that colour, in descending order."""


def token_lines(found: Mapping[str, Any]) -> list[RenderableType]:
    """Build lines with the tokens of an episode, coloured by probability, for printing.

    Args:
        found: Result of ``Answers.tokens``.
    """
    tokens = found["tokens"]
    trained = sum(bool(token["mask"]) for token in tokens)
    legend = Text(
        f"{found['prompt_ids']:,} prompt tokens, {len(tokens):,} completion tokens, {trained:,} from the policy: "
    )
    for at, (least, style) in enumerate(_SHADES):
        legend.append(f"p ≥ {least:g}  " if at + 1 < len(_SHADES) else f"p < {_SHADES[-2][0]:g}  ", style)
    legend.append("environment", "dim")
    parts: list[RenderableType] = [legend]
    if found["note"]:
        parts.append(safe_text(found["note"], "yellow"))
    if found["prompt"] is not None:
        parts.append(Panel(safe_text(found["prompt"], "dim"), title="prompt", title_align="left"))
    text = Text()
    for token in tokens:
        text.append(harmless(token["text"]), _style(token))
    parts.append(Panel(text, title="completion", title_align="left"))
    return parts


def _style(token: Mapping[str, Any]) -> str:
    logprob = token["logprob"]
    if not token["mask"]:
        return "dim"
    if not isinstance(logprob, int | float) or math.isnan(logprob):
        return ""
    return next((style for least, style in _SHADES if math.exp(min(logprob, 0.0)) >= least), "red")
