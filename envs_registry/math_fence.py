"""``rstar2/MathFence-v0``: math problems with Python in code fences, for base models (ZeroTIR, arXiv 2505.07773)."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rstar2_env.env.vector import vector_entry_point

from .math_tool import MathToolEnv


class MathFenceEnv(MathToolEnv):
    r"""A math problem, with Python in code fences instead of JSON calls, as base models write it unprompted.

    Everything except the notation of calls and answers is as in ``rstar2/MathTool-v0`` (ZeroTIR, arXiv 2505.07773).

    ## Action space
    Any string: the policy's whole turn. A program between ```` ```python ```` and a line of three backticks is a call;
    all programs of a turn run, in order. The answer is the last ``\boxed{}`` outside such fences. An engine should stop
    at the strings in ``env.unwrapped.dialect.stop``.

    ## Observation space
    Any string. ``reset`` returns the problem; ``step`` returns the text that the policy is shown next: one ````
    ```output ```` fence for each program, as a user message, or an empty string at the end.

    ## Reward
    1 at the end if the last answer of the policy's own text is right, else 0. A program's output earns nothing.

    ## Episode end
    The episode continues after a turn that contains a Python fence, closed or not, even if it also contains an answer,
    and after a turn that has neither a Python fence nor an answer and ends with an ``output`` fence or an untagged
    fence (``malformed``: the policy is shown the correct tag). Any other turn ends the episode:
    ``terminated``, with ``info["end"]`` ``answered`` or ``no_answer``. ``truncated``: the budget ran out (``turns``,
    ``tokens``, ``time``), or the environment's own machinery failed (``unavailable``).

    ## Information
    As in ``rstar2/MathTool-v0``. ``answer_tags`` counts the complete boxes.

    ## Difficulty
    ``problems``: ``"arithmetic:level=1"`` to ``"arithmetic:level=5"``, or any other source.

    ## Random baseline
    0: the player writes random text, which contains no box.

    ## Version history
    v0: first version.

    Args:
        problems: Anything that ``rstar2_env.problems.load_problems`` accepts.
        dialect: ``"fenced"``, with or without options, or another dialect.
        **options: The options of ``rstar2/MathTool-v0``.

    Raises:
        ConfigurationError: An option is out of range.
    """

    random_baseline = 0.0

    def __init__(self, *, problems: Any = "arithmetic", dialect: Any = "fenced", **options: Any) -> None:
        super().__init__(problems=problems, dialect=dialect, **options)


gym.register(
    "rstar2/MathFence-v0",
    entry_point="rstar2_env.envs_registry.math_fence:MathFenceEnv",
    vector_entry_point=vector_entry_point("rstar2/MathFence-v0"),
)
