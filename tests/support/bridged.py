"""What the tests of the bridges share: an environment with calls of every kind, its turns, and how it goes directly."""

from __future__ import annotations

import json
from typing import Any

from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.testing.stub_tool import StubTool
from rstar2_env.testing.toy_env import same_text
from rstar2_env.tools import CallContext
from rstar2_env.wrappers.make import make_env

SUMS = "bridged:Sums"
"""The environment's name, for whatever makes it by name."""

PARAMETERS = {
    "type": "object",
    "properties": {"word": {"type": "string", "description": "What it does."}},
    "required": ["word"],
}


class Sums(ToolEnv):
    """Twenty sums and one tool, ``say``, whose answer is what its argument names: a status, or the text itself.

    Args:
        **options: Of ``ToolEnv``.
    """

    def __init__(self, **options: Any) -> None:
        problems = [{"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(20)]
        tool = StubTool(_answer, name="say", description="Says a word.", parameters=PARAMETERS)
        super().__init__(**{"problems": problems, "tools": [tool], "grader": same_text, "max_turns": 5, **options})


def _answer(arguments: Any, context: CallContext) -> Any:
    word = str(arguments.get("word", ""))
    return ToolStatus(word) if word in set(ToolStatus) else word


DIALECT = make_dialect("rstar2")


def call(word: str) -> str:
    """A turn with one call."""
    return f"I call. {DIALECT.format_call('say', {'word': word})}"


def answer(text: str) -> str:
    """A turn that ends the episode."""
    return f"So: {DIALECT.format_answer(text)}"


SCRIPTS = {
    "right": (call("hello"), call("exception"), answer("6")),
    "wrong": (call("timeout"), answer("7")),
    "malformed": ('<tool_call>{"name": </tool_call>', answer("6")),
    "no answer": ("I do not know.",),
    "turns": (call("a"),) * 5,
    "unavailable": (call("ok then"), call("unavailable")),
}
"""Turns of the episodes of problem ``p3``, by how they go."""


def direct(env: str, seed: int, turns: Any, problem_id: str | None = None, **options: Any) -> list[Any]:
    """Every return of ``reset`` and ``step``, as JSON holds it.

    Args:
        env: What ``make_env`` takes.
        seed: Of ``reset``.
        turns: The actions.
        problem_id: The problem to play.
        **options: Of ``make_env``.
    """
    made = make_env(env, **options)
    try:
        text, info = made.reset(seed=seed, options=None if problem_id is None else {"problem_id": problem_id})
        trace: list[Any] = [[text, info]]
        for turn in turns:
            text, reward, terminated, truncated, info = made.step(turn)
            trace.append([text, float(reward), terminated, truncated, info])
            if terminated or truncated:
                break
        found: list[Any] = json.loads(json.dumps(trace))
        return found
    finally:
        made.close()
