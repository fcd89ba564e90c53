"""Claims about compact prompts: short, and everything else of the dialect unchanged."""

from __future__ import annotations

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401


@pytest.mark.parametrize(
    ("env", "dialect", "most"), [("rstar2/MathFence-v0", "fenced", 0.35), ("rstar2/MathTool-v0", "rstar2", 0.25)]
)
def test_a_compact_prompt_is_short_and_names_the_tool_and_the_box(env, dialect, most):
    def prompt(compact: str) -> str:
        made = gym.make(env, dialect=f"{dialect}:compact={compact}", problems=[{"question": "1+1?", "answer": "2"}])
        try:
            observation, info = made.reset(seed=0)
        finally:
            made.close()
        return info["system"] + observation

    short, long = prompt("true"), prompt("false")
    assert len(short) < most * len(long)
    assert "\\boxed{" in short
    assert short.endswith("1+1?")
    assert ("execute_python_code_with_standard_io(code" in short) is (dialect == "rstar2")


def test_a_compact_dialect_plays_as_the_long_one():
    made = gym.make("rstar2/MathTool-v0", dialect="rstar2:compact=true", problems=[{"question": "1+1?", "answer": "2"}])
    try:
        made.reset(seed=0)
        *_, info = made.step("<answer>\\boxed{2}</answer>")
    finally:
        made.close()
    assert info["correct"]
