"""``Sums``, an environment that passes every check of ``rstar2 validate --level``; ``bad_envs`` breaks it."""

from __future__ import annotations

from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.problems import Draft, ProceduralSource
from rstar2_env.testing.toy_env import same_text
from rstar2_env.tools import FunctionTool


def draw(rng):
    one, other = (int(n) for n in rng.integers(100, 1000, size=2))
    return Draft(f"Compute: {one} + {other}", str(one + other), f"{one}+{other}")


def half(number: int) -> str:
    """Half of a number."""
    return str(number / 2)


class Sums(ToolEnv):
    """Sums of three digits, one tool, answers compared as text: passes every check."""

    question = "%s"

    def __init__(self, split: str = "train", **options):
        defaults = {"problems": ProceduralSource("sums", draw, split), "tools": [FunctionTool(half)]}
        super().__init__(**{**defaults, "grader": same_text, "max_turns": 4, **options})
