"""``rstar2/MathNotebook-v0``: math problems with a notebook, whose cells share variables for a whole episode."""

from __future__ import annotations

import gymnasium as gym

from rstar2_env.env.vector import vector_entry_point
from rstar2_env.tools import NotebookTool

from .math_tool import MathToolEnv


class MathNotebookEnv(MathToolEnv):
    r"""A math problem and a stateful Python notebook: ``jupyter_code(code)``, one session an episode.

    Everything is as in ``rstar2/MathTool-v0``, but for the tool.

    ## Action space
    Any string: the policy's whole turn. A call runs one cell; several in one turn all run, in order. The answer is a
    ``\boxed{}`` between ``<answer>`` and ``</answer>``.

    ## Observation space
    Any string. ``reset`` returns the user's message; ``step`` one ``<tool_response>`` a cell (what it printed and the
    value of its last expression), or nothing at the end.

    ## Reward
    1 at the end if the last answer of the policy's own text is right, else 0. What a cell printed earns nothing.

    ## Episode end
    As in ``rstar2/MathTool-v0``. The session ends with the episode.

    ## Information
    As in ``rstar2/MathTool-v0``; beside it every record in ``tool_calls`` of a cell that ran has ``session``: ``new``
    (the first cell), ``kept``, ``interrupted`` (the cell ran out of time; the state is kept) or ``ended`` (the cell
    ended the session: too much memory, an exit; the next one starts clean). The last two are told to the policy too. A
    session that was lost by no fault of the policy's is rebuilt from its cells; where that fails, the call is
    ``unavailable``.

    ## Difficulty
    ``problems``: ``"arithmetic:level=1"`` to ``"arithmetic:level=5"``, or any other source.

    ## Random baseline
    0: random text, which holds no box.

    ## Version history
    v0: the first.

    Args:
        **options: Everything that ``rstar2/MathTool-v0`` takes. ``limits`` are a cell's wall clock and output, and the
            whole session's memory, processes and files.

    Raises:
        ConfigurationError: An option is out of its range.
    """

    random_baseline = 0.0
    tool_class = NotebookTool


gym.register(
    "rstar2/MathNotebook-v0",
    entry_point="rstar2_env.envs_registry.math_notebook:MathNotebookEnv",
    vector_entry_point=vector_entry_point("rstar2/MathNotebook-v0"),
)
