"""Episodes as a policy that learns would play them: problems, code, results, statuses, faults; drawn, not played.

Covered: everything that the folder of a run says about an episode, in plausible proportions. Not covered: a model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.problems import Problem
from rstar2_env.verification import Reason, Verdict

TOOL = "execute_python_code_with_standard_io"
SYSTEM = (
    "You solve mathematical problems. First think step by step between <reason> and </reason>. Give the final answer "
    "exactly once, between <answer> and </answer>, with the result itself in \\boxed{}."
)
ASKED = (
    "Solve the problem below. Put the final answer between <answer> and </answer>; only what stands there in "
    "\\boxed{} is graded.\n\nProblem: "
)
TASKS = ("sums", "products", "remainders", "primes", "digits")
LEVELS = 5
_ERRORS = {
    ToolStatus.EXCEPTION: 'Traceback (most recent call last):\n  File "program.py", line 2, in <module>\nNameError: '
    "name 'x' is not defined",
    ToolStatus.SYNTAX_ERROR: "SyntaxError: '(' was never closed (program.py, line 2)",
    ToolStatus.TIMEOUT: "The program was stopped: it ran for longer than 4 s.",
    ToolStatus.MALFORMED: "The call is not valid JSON: expected ',' or '}'. Nothing was run.",
    ToolStatus.MEMORY: "MemoryError: the program used more than 512 MiB.",
    ToolStatus.BLOCKED: "PermissionError: the sandbox refused to open a connection.",
}
_ERROR_WEIGHTS = (50, 20, 12, 12, 3, 3)


def made_problems(count: int, seed: int = 0) -> list[Problem]:
    """Problems of several kinds and levels, each with its right answer."""
    rng = Random(seed)
    return [_problem(f"made-{number:04d}", TASKS[number % len(TASKS)], rng) for number in range(count)]


def _problem(name: str, task: str, rng: Random) -> Problem:
    level = rng.randrange(LEVELS) + 1
    big = 10 ** (level + 1)
    a, b, m = rng.randrange(big // 10, big), rng.randrange(big // 10, big), rng.randrange(7, 97)
    question, answer = {
        "sums": (f"What is {a} + {b}?", a + b),
        "products": (f"What is {a} * {b}?", a * b),
        "remainders": (f"What remains when {a} * {b} is divided by {m}?", a * b % m),
        "primes": (f"How many primes p satisfy p < {a % 1000 + 10}?", _primes_below(a % 1000 + 10)),
        "digits": (f"Find the sum of the digits of {a} * {b}.", sum(map(int, str(a * b)))),
    }[task]
    return Problem(name, question, str(answer), task, {"level": level})


def _primes_below(most: int) -> int:
    return sum(all(number % d for d in range(2, math.isqrt(number) + 1)) for number in range(2, most))


@dataclass(frozen=True, slots=True)
class Skill:
    """How well the policy plays at some moment.

    Attributes:
        right: Log-odds of a right answer to a problem of level 3.
        slip: Probability that a call is an error.
        fault: Probability that a wrapper injects a fault into a call.
        broken: Probability that the infrastructure fails an episode.
    """

    right: float = 0.0
    slip: float = 0.15
    fault: float = 0.01
    broken: float = 0.002

    def chance(self, problem: Problem) -> float:
        """Probability of a right answer."""
        return 1 / (1 + math.exp(0.9 * (problem.meta["level"] - 3) - self.right))


def made_episode(
    problem: Problem, skill: Skill, rng: Random, *, group: int = 0, seed: int | None = 0, version: int = 0
) -> Episode:
    """One episode of a problem.

    Args:
        problem: One of ``made_problems``.
        skill: How well the policy plays.
        rng: Source of all draws.
        group: Number of its group.
        seed: Seed of its ``reset``.
        version: Version of the weights that draw it.
    """
    episode = Episode(group=group, seed=seed, problem_id=problem.id, task=problem.source, policy_version=version)
    episode.messages = [
        Message("system", SYSTEM),
        Message("user", ASKED + problem.question),
    ]
    right = rng.random() < skill.chance(problem)
    spent = 0
    for number in range(rng.choice((1, 1, 1, 2, 2, 3))):
        spent = _call(episode, problem, skill, rng, number, spent, right)
    episode.recorded_tokens = _finish(episode, problem, rng, spent, right)
    if rng.random() < skill.broken:
        episode.void("unavailable", "ConnectionError: the sandbox did not answer within 60 s")
    return episode


def _call(episode: Episode, problem: Problem, skill: Skill, rng: Random, number: int, spent: int, right: bool) -> int:
    shown = episode.messages[-1].content
    injected = rng.random() < skill.fault
    status = ToolStatus.OK if rng.random() < 0.95 else ToolStatus.EMPTY
    if injected:
        status = ToolStatus.TIMEOUT
    elif rng.random() < skill.slip:
        (status,) = rng.choices(tuple(_ERRORS), _ERROR_WEIGHTS)
    wrong_by = 0 if right else rng.randrange(1, 9)
    value = int(problem.answer) + wrong_by
    code = f"# step {number + 1}: {problem.source}\nvalue = {value - number} + {number}\nprint(value)"
    call = json.dumps({"name": TOOL, "arguments": {"code": code, "input": ""}})
    said = f"<reason>Let me compute this, attempt {number + 1}.</reason>\n<tool_call>\n{call}\n</tool_call>"
    result = {ToolStatus.OK: str(value), ToolStatus.EMPTY: ""}.get(status) or _ERRORS.get(status, "")
    tokens = len(said) // 4 + rng.randrange(20)
    record = {"name": TOOL, "status": str(status), "error_type": str(status) if status.is_error else None}
    record |= {"exit_code": int(status.is_error), "truncated": False, "injected": injected}
    info: dict[str, Any] = {"role": "user", "tool_calls": [record], "answer_tags": 0}
    statuses = [] if injected else [status]
    episode.steps.append(Turn(spent, spent + tokens, shown, 0.0, statuses, episode.policy_version, info))
    episode.statuses += statuses
    episode.injected += [status] if injected else []
    episode.messages += [
        Message("assistant", said),
        Message("user", f"<tool_response>\n{result}\n</tool_response>"),
    ]
    episode.turns += 1
    return spent + tokens + len(result) // 4


def _finish(episode: Episode, problem: Problem, rng: Random, spent: int, right: bool) -> int:
    shown = episode.messages[-1].content
    drawn = rng.random()
    end = "answered" if right or drawn < 0.85 else "no_answer" if drawn < 0.93 else "tokens"
    answer = problem.answer if right else str(int(problem.answer) + rng.randrange(1, 9))
    tags = 0 if end != "answered" else 2 if drawn > 0.8 else 1
    said = {"no_answer": "I cannot tell.", "tokens": "<reason>" + "So again, from the beginning. " * 8}.get(
        end, f"<reason>The program says so.</reason>\n<answer>\\boxed{{{answer}}}</answer>"
    )
    tokens = len(said) // 4 + 1
    episode.reward, episode.correct, episode.end = float(right), right, end
    episode.answer, episode.answer_tags = (answer if tags else None), tags
    episode.turns += 1
    info: dict[str, Any] = {"role": "user", "tool_calls": [], "end": end, "answer": episode.answer, "correct": right}
    info |= {"turns": episode.turns, "tool_errors": sum(one.is_error for one in episode.statuses), "answer_tags": tags}
    if tags:
        info["verdict"] = Verdict(right, Reason.EQUAL if right else Reason.DIFFERENT, "number").record()
    episode.steps.append(Turn(spent, spent + tokens, shown, float(right), [], episode.policy_version, info))
    episode.messages.append(Message("assistant", said))
    episode.rewards = {"return": float(right)}
    return sum(turn.tokens for turn in episode.steps)


def counted(episodes: Sequence[Episode]) -> dict[str, int]:
    """What tests count: episodes, right ones, and those of each end."""
    found = {"episodes": len(episodes), "correct": sum(episode.correct for episode in episodes)}
    for episode in episodes:
        found[f"end {episode.end}"] = found.get(f"end {episode.end}", 0) + 1
    return found
