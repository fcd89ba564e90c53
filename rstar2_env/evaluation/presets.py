"""Presets of evaluations by name: the settings with which a paper reports its figures.

A preset has the contents of a suite's file (``rstar2_env.evaluation.suite``): options, which the user's options
override, and sets of problems, which are used if the user names no problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.core.errors import UnknownNameError

PRESETS: dict[str, Mapping[str, Any]] = {
    # rStar2-Agent (arXiv 2508.20722): temperature 0.6, 30 turns, 30K tokens, the mean of 16 samples. Its scripts write
    # 30K as 30720.
    "rstar2": {
        "env": "rstar2/MathTool-v0",
        "env_options": {"max_turns": 30},
        "model_options": {"temperature": 0.6, "max_episode_tokens": 30720},
        "n": 16,
        "sets": {
            "math-500": {"problems": "math-500"},
            "aime24": {"problems": "aime24"},
            "aime25": {"problems": "aime25"},
            "hmmt25": {"problems": "hmmt25"},
        },
    },
}
"""The presets by name."""


def preset(name: str) -> Mapping[str, Any]:
    """Return the options of the preset ``name``.

    Raises:
        UnknownNameError: There is no such preset; the message suggests the nearest name.
    """
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]
