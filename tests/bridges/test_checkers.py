"""Checkers that others publish, against environments of this package: ``falsepass`` and ``bohrin``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from bohrin.ir.task import Shape, Source, Task
from bohrin.mutate.battery import battery
from bohrin.scoring.coverage import Attempt, coverage_score
from checked_envs import TOOL_ENVS, earned, tool_call

from rstar2_env.env.reference import playing
from rstar2_env.wrappers.make import make_env

ENVS = (
    "rstar2/MathTool-v0",
    "rstar2/MathFence-v0",
    "rstar2/MathNotebook-v0",
    "rstar2/KnightsKnaves-v0",
    "rstar2/StringCompose-v0",
    "rstar2/Countdown-v0",
    "rstar2/Game24-v0",
    "rstar2/Alphametic-v0",
    "rstar2/Sudoku-v0",
)
NAMED_TOOLS = ("rstar2/MathTool-v0", "rstar2/MathNotebook-v0")
"""Environments in which a turn can name a tool; elsewhere T7, a call of a tool before the answer, cannot be written."""
LAST_BOX = "rstar2/MathFence-v0"
"""Its answer is the last box of a turn, an empty one too, which falsepass counts as a right answer refused."""


def counts(env, one):
    """Whether a probe says something of an environment."""
    if one["probe"] == "T7":
        return env in NAMED_TOOLS
    return (env, one["variant"]) != (LAST_BOX, "empty_box_named_after")


@pytest.mark.parametrize("env", ENVS)
def test_falsepass_finds_nothing_in_an_environment(env, tmp_path):
    (tmp_path / "adapter.py").write_text(f"from checked_envs import adapter\n\nADAPTER = adapter({env!r})\n")
    (tmp_path / "env.toml").write_text(f'[env]\nid = "{env}"\n')
    words = [sys.executable, "-P", "-m", "falsepass.runner", str(tmp_path), "-n", "4", "--few", "1", "--jobs", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads((tmp_path / "probe-results.json").read_text())["results"]
    assert {"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P9", "P10", "P11", "P14", "P15", "A1"} <= {
        one["probe"] for one in told
    }
    assert [one for one in told if (not one["passed"] or one["errors"]) and counts(env, one)] == []


REFERENCE = (
    "def solve(numbers):\n    total = 0\n    for number in numbers:\n        total += number\n    return total\n"
)


def written(candidate):
    """The program that does in a sandbox what a candidate does, its placeholders filled in."""
    if isinstance(candidate.payload, Source):
        return candidate.payload.text
    places = {name: f"{name}.txt" for name in candidate.payload.parameters} | {
        "reward_path": "logs/verifier/reward.txt"
    }
    lines = ["import os, pathlib, subprocess"]
    for path, text in candidate.payload.files.items():
        place = path.format(**places)
        lines.append(f"pathlib.Path({place!r}).parent.mkdir(parents=True, exist_ok=True)")
        lines.append(f"pathlib.Path({place!r}).write_text({text or ''!r})")
    lines += [f"subprocess.run({command.format(**places)!r}, shell=True)" for command in candidate.payload.commands]
    return "\n".join(lines)


@pytest.mark.parametrize("env", TOOL_ENVS)
@pytest.mark.parametrize("shape", [Shape.PROGRAM, Shape.CONTAINER])
def test_no_submission_of_bohrin_earns_a_reward(env, shape):
    made = make_env(env)
    attempts = []
    for seed in range(2):
        text, _ = made.reset(seed=seed)
        found = battery(Task(id=str(seed), prompt=text, reference=REFERENCE, shape=shape)).candidates
        assert found
        for candidate in found:
            program = written(candidate)
            answer = playing(made).dialect.format_answer("done")
            as_code = earned(made, seed, [tool_call(made, program), answer])
            as_answer = earned(made, seed, [program])
            attempts.append(Attempt(str(seed), candidate, accepted=max(as_code, as_answer) > 0))
    made.close()
    score = coverage_score(attempts)
    assert score.measured
    assert score.score == 100.0, [one.candidate.provenance for one in attempts if one.accepted]


@pytest.mark.parametrize("env", TOOL_ENVS)
def test_the_right_answer_earns_it(env):
    made = make_env(env)
    made.reset(seed=0)
    gold = playing(made).problem.answer
    assert earned(made, 0, [tool_call(made, "print(1)"), playing(made).dialect.format_answer(gold)]) == 1.0
    made.close()
