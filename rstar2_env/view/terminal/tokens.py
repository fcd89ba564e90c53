"""The tokens of an episode in a terminal, coloured by how likely the policy found each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from rstar2_env.view.terminal.harmless import harmless, shown

_SHADES = ((0.9, "green"), (0.5, "cyan"), (0.1, "yellow"), (0.0, "red"))
"""Least probability of each colour."""


def token_lines(found: Mapping[str, Any]) -> list[RenderableType]:
    """What to show of them.

    Args:
        found: As ``Answers.tokens`` has them.
    """
    tokens = found["tokens"]
    trained = sum(bool(one["mask"]) for one in tokens)
    legend = Text(
        f"{found['prompt_ids']:,} tokens of the prompt, {len(tokens):,} after it, {trained:,} of the policy: "
    )
    for at, (least, style) in enumerate(_SHADES):
        legend.append(f"p ≥ {least:g}  " if at + 1 < len(_SHADES) else "below  ", style)
    legend.append("masked", "dim")
    parts: list[RenderableType] = [legend]
    if found["note"]:
        parts.append(shown(found["note"], "yellow"))
    if found["prompt"] is not None:
        parts.append(Panel(shown(found["prompt"], "dim"), title="prompt", title_align="left"))
    text = Text()
    for one in tokens:
        text.append(harmless(one["text"]), _style(one))
    parts.append(Panel(text, title="completion", title_align="left"))
    return parts


def _style(token: Mapping[str, Any]) -> str:
    logprob = token["logprob"]
    if not token["mask"]:
        return "dim"
    if not isinstance(logprob, int | float) or math.isnan(logprob):
        return ""
    return next((style for least, style in _SHADES if math.exp(min(logprob, 0.0)) >= least), "red")
