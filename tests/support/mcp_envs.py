"""Environments with the tools of the MCP servers of the tests, and calls in them."""

from __future__ import annotations

from places import SUPPORT

from rstar2_env.dialects import make_dialect
from rstar2_env.wrappers.make import make_env

SERVER = SUPPORT / "mcp_tools.py"
LOCAL = f"mcp:{SERVER}"
OLD = f"mcp:{SUPPORT / 'old_mcp_server.py'}"
PROBLEMS = [{"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(4)]
DIALECT = make_dialect("rstar2")


def call(name, **arguments):
    return DIALECT.format_call(name, arguments)


def env_with(*tools, **options):
    return make_env("rstar2/MathTool-v0", problems=PROBLEMS, tools=list(tools), **options)


def calls(env, *turns, seed=0):
    """Play calls in one new episode; returns each status with the text that the policy was shown."""
    env.reset(seed=seed, options={"problem_id": "p3"})
    found = []
    for turn in turns:
        text, _, terminated, truncated, info = env.step(turn)
        found.append((info["tool_calls"][-1]["status"], text))
        if terminated or truncated:
            break
    return found
