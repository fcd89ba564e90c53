"""``rstar2/MathFence-v0``: math problems with Python in code fences, for base models (ZeroTIR)."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rstar2_env.env.vector import vector_entry_point

from .math_tool import MathToolEnv


class MathFenceEnv(MathToolEnv):
    r"""A math problem, with Python in code fences instead of JSON calls: the protocol that base models fall into.

    Everything is as in ``rstar2/MathTool-v0``, but for how the policy writes.

    ## Action space
    Any string: the policy's whole turn. A program between ```` ```python ```` and a line of three backticks is a call;
    several in one turn all run, in order. The answer is the last ``\boxed{}`` outside such fences. An engine should
    stop at ``env.unwrapped.dialect.stop``.

    ## Observation space
    Any string. ``reset`` returns the problem; ``step`` what the policy is shown next: one ```` ```output ```` fence a
    program, as a user message, or nothing at the end.

    ## Reward
    1 at the end if the last answer of the policy's own text is right, else 0. What a program printed earns nothing.

    ## Episode end
    A turn that holds a Python fence, closed or not, goes on, even if it also holds an answer; so does one that ends
    with a fence of another kind and holds no answer (``malformed``: the model is told about the tag). Any other turn
    ends the episode: ``terminated``, with ``info["end"]`` ``answered`` or ``no_answer``. ``truncated``: the
    budget ran out (``turns``, ``tokens``, ``time``), or our own machinery failed (``unavailable``).

    ## Information
    As in ``rstar2/MathTool-v0``. ``answer_tags`` counts the complete boxes.

    ## Difficulty
    ``problems``: ``"arithmetic:level=1"`` to ``"arithmetic:level=5"``, or any other source.

    ## Random baseline
    0: random text, which holds no box.

    ## Version history
    v0: the first.

    Args:
        problems: Whatever ``rstar2_env.problems.load_problems`` takes.
        dialect: ``"fenced"``, with options or without, or another dialect.
        **options: Everything that ``rstar2/MathTool-v0`` takes.

    Raises:
        ConfigurationError: An option is out of its range.
    """

    random_baseline = 0.0

    def __init__(self, *, problems: Any = "arithmetic", dialect: Any = "fenced", **options: Any) -> None:
        super().__init__(problems=problems, dialect=dialect, **options)


gym.register(
    "rstar2/MathFence-v0",
    entry_point="rstar2_env.envs_registry.math_fence:MathFenceEnv",
    vector_entry_point=vector_entry_point("rstar2/MathFence-v0"),
)
