"""``rstar2/MathNotebook-v0``: math problems with a notebook, whose cells share variables during an episode."""

from __future__ import annotations

import gymnasium as gym

from rstar2_env.env.vector import vector_entry_point
from rstar2_env.tools import NotebookTool

from .math_tool import MathToolEnv


class MathNotebookEnv(MathToolEnv):
    r"""A math problem and a stateful Python notebook: ``jupyter_code(code)``, one session for each episode.

    Everything except the tool is as in ``rstar2/MathTool-v0``.

    ## Action space
    Any string: the policy's whole turn. A call runs one cell; all cells of a turn run, in order. The answer is a
    ``\boxed{}`` between ``<answer>`` and ``</answer>``.

    ## Observation space
    Any string. ``reset`` returns the user's message; ``step`` returns one ``<tool_response>`` for each cell (its output
    and the value of its last expression), or an empty string at the end.

    ## Reward
    1 at the end if the last answer of the policy's own text is right, else 0. A cell's output earns nothing.

    ## Episode end
    As in ``rstar2/MathTool-v0``. The session ends with the episode.

    ## Information
    As in ``rstar2/MathTool-v0``. In addition, each record in ``tool_calls`` of a cell that ran has the entry
    ``session``: ``new`` (the first cell), ``kept``, ``interrupted`` (the cell ran out of time; the state is kept) or
    ``ended`` (the cell ended the session, by an exit or by using too much memory; the next cell starts a new session).
    Only ``interrupted`` and ``ended`` are shown to the policy. A session that was lost through no fault of the policy
    is rebuilt from its cells; if that fails, the call is ``unavailable``.

    ## Difficulty
    ``problems``: ``"arithmetic:level=1"`` to ``"arithmetic:level=5"``, or any other source.

    ## Random baseline
    0: the player writes random text, which contains no box.

    ## Version history
    v0: first version.

    Args:
        **options: The options of ``rstar2/MathTool-v0``. ``limits`` apply to the wall clock and output of one cell, and
            to the memory, processes and files of the whole session.

    Raises:
        ConfigurationError: An option is out of range.
    """

    random_baseline = 0.0
    tool_class = NotebookTool


gym.register(
    "rstar2/MathNotebook-v0",
    entry_point="rstar2_env.envs_registry.math_notebook:MathNotebookEnv",
    vector_entry_point=vector_entry_point("rstar2/MathNotebook-v0"),
)
