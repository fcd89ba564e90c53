"""``PuzzleEnv``: a single-turn environment over a family of puzzles. ``register`` gives a puzzle its Gymnasium id.

An author writes a ``Puzzle`` (knobs, generator, verifier, random guess) whose docstring is the specification, and calls
``register`` once; this module exports all names that an author needs. Not covered: environments with an opponent
(``game_env``) or with state between turns (``tool_env``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, call_with_options, checked
from rstar2_env.env.family_env import FamilyEnv, environment_class
from rstar2_env.problems import FAMILIES, Draft, split_of
from rstar2_env.sandbox.job import Sandbox
from rstar2_env.sandbox.limits import Limits
from rstar2_env.tools import PythonTool
from rstar2_env.tools.by_name import ToolChoice, make_tools
from rstar2_env.worlds.family import knob
from rstar2_env.worlds.puzzle import Meta, Puzzle, PuzzleGrader, UnreadableAnswerError

__all__ = ["Draft", "Meta", "Puzzle", "PuzzleEnv", "UnreadableAnswerError", "knob", "register", "split_of"]

_TURNS_WITH_TOOL = 10

_COMMON = r"""
## Action space
Any string: the policy's whole turn. With the ``rstar2`` dialect the answer is a ``\boxed{}`` between ``<answer>`` and
``</answer>``; the last one counts.

## Observation space
Any string. ``reset`` returns the user's message with the puzzle. ``step`` returns the results of the turn's calls (with
``tool=True``), and an empty string at the end.

## Reward
1 at the end if the family's own verifier, which uses no model and no tool, accepts the answer; else 0.

## Episode end
A turn without a call ends the episode: ``terminated``, with ``info["end"]`` ``answered`` or ``no_answer``. Without the
tool, an episode has one turn, and a turn with a call ends it too: ``truncated``, with ``turns``. With the tool, an
episode ends as in ``rstar2/MathTool-v0``.

## Information
As in ``rstar2/MathTool-v0``. On ``reset``: ``problem_id``, ``tools`` (empty without the tool), ``system``,
``stop``. On ``step``: ``role``, ``tool_calls``, ``answer_tags``; at the end also ``end``, ``answer``, ``correct``,
``turns``, ``tool_errors``, ``tool_calls_total``, and ``verdict`` if there was an answer.
"""

_ARGS = """
Args:
    problems: Problems of this family to use instead of those generated from the knobs; any value that
        ``load_problems`` accepts.
    tool: Give the policy the Python tool and ten turns.
    tools: Other tools instead, also with ten turns: ``python``, an MCP server (``mcp:./server.py``), or your own.
    split: "train", "validation" or "test"; two splits never share an instance.
    sandbox: The sandbox that runs the tool's programs; see ``rstar2_env.tools.PythonTool``.
    limits: Resource limits of one program; a ``Limits`` or a dict of its fields.
    **options: The knobs, and all other options of ``ToolEnv``.

Raises:
    ConfigurationError: An option is out of its range, or a problem is not of this family.
"""


class PuzzleEnv(FamilyEnv):
    """One puzzle, one answer, a reward of 0 or 1; ``register`` creates one subclass per family of puzzles.

    Args:
        problems: Any value that ``load_problems`` accepts; ``None`` means the family's own problems.
        tool: Give the policy the Python tool and ten turns.
        tools: Tools in place of the Python tool, also with ten turns: ``python``, an MCP server (``mcp:./server.py``),
            or tools of your own.
        split: "train", "validation" or "test".
        sandbox: The sandbox that runs the tool's programs; see ``rstar2_env.tools.PythonTool``.
        limits: Resource limits of one program; a ``Limits`` or a dict of its fields.
        max_turns: Maximum turns of the policy; by default 10 with the tool, else 1.
        **options: The family's difficulty options ("knobs"), and all other options of ``ToolEnv``.

    Raises:
        ConfigurationError: An option is out of its range, or both knobs and ``problems`` are given.
    """

    family_class: ClassVar[type[Puzzle]]
    shared = _COMMON
    arguments = _ARGS

    @checked
    def __init__(
        self,
        *,
        problems: Any = None,
        tool: bool = False,
        tools: Sequence[ToolChoice] = (),
        split: str = "train",
        sandbox: Sandbox | str | Mapping[str, Any] = "local",
        limits: Limits | Mapping[str, Any] | None = None,
        max_turns: Count | None = None,
        **options: Any,
    ) -> None:
        knobs, options = self.own_knobs(options)
        self.family = self.family_class.with_knobs(knobs)
        if problems is not None and knobs:
            raise ConfigurationError(
                f"The options {', '.join(sorted(knobs))} configure the problems that the environment "
                "generates, so they cannot be combined with problems=: omit one of them."
            )
        if isinstance(limits, Mapping):
            limits = call_with_options("limits", Limits, limits, prefix="limits.")
        super().__init__(
            problems=self.family.source(split) if problems is None else problems,
            tools=make_tools(
                tools or (["python"] if tool else []), {"python": partial(PythonTool, sandbox, limits=limits)}
            ),
            grader=PuzzleGrader(self.family),
            split=split,
            max_turns=(_TURNS_WITH_TOOL if tool or tools else 1) if max_turns is None else max_turns,
            **options,
        )
        self._own = problems is None

    def begin(self, options: Mapping[str, Any]) -> None:
        """Reject a problem that the verifier cannot grade, before the policy spends a turn on it.

        Raises:
            ConfigurationError: The verifier cannot grade the problem.
        """
        if self._own and "problem" not in options:
            return
        problem = self.problem
        try:
            if self.family.solves(problem.meta, problem.answer):
                return
            fault = "the family's verifier rejects the problem's gold answer"
        except UnreadableAnswerError as error:
            fault = f"the gold answer cannot be parsed: {error}"
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            fault = f"the field meta is not in the format of the family ({type(error).__name__}: {error})"
        raise ConfigurationError(
            f"Problem {problem.id!r} does not fit the family {self.family.name!r}: {fault}. Use problems from "
            f"load_problems({self.family.name!r})."
        )

    def random_turn(self, rng: np.random.Generator) -> str:
        """Return the turn of the random baseline: a random answer in the right format."""
        return self.dialect.format_answer(self.family.guess(self.problem.meta, rng))


def register(env_id: str, puzzle: type[Puzzle]) -> type[PuzzleEnv]:
    """Create the environment of a puzzle; register its Gymnasium id, and the family's name for ``load_problems``.

    Args:
        env_id: The Gymnasium id, such as "rstar2/Saturn-v0".
        puzzle: A class at the top level of its module. The environment's class (``SaturnEnv`` for ``Saturn``) is added
            to the same module.

    Raises:
        DuplicateNameError: Another family already has that name.
    """
    env = environment_class(PuzzleEnv, puzzle)
    gym.register(env_id, entry_point=f"{env.__module__}:{env.__qualname__}")
    FAMILIES.register(puzzle.name, puzzle.family)
    return env
