"""Measure the environment itself: reset + step without a tool call, check_env, the import, one for each problem.

    python benchmarks/env.py

"Own time" is the time of reset + step with one ready problem and an answer that is a plain number, less the same pair
of calls on an empty ``gymnasium.Env``. Each figure is the best of several repeats, in CPU time of this thread, so that
a busy machine does not count. "An environment for each problem" is a loop of ``gym.make``, ``reset``, a ``step`` that
calls the tool, a ``step`` that answers, and ``close``, in wall-clock time: the sandbox that each needs is started once
and kept from one to the next. Not covered: other tool calls (the sandbox's benchmark), generating problems at scale.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import gymnasium as gym
from gymnasium.utils.env_checker import check_env

import rstar2_env
from rstar2_env.env.spaces import UnicodeText

TARGET_US = 50.0
TARGET_EPISODES_S = 100.0
CALL = (
    '<tool_call>{"name": "execute_python_code_with_standard_io", '
    '"arguments": {"code": "print(1)", "input": ""}}</tool_call>'
)
ANSWER = "The answer is <answer>\\boxed{7}</answer>."


class Nothing(gym.Env[str, str]):
    """The least that an environment can do."""

    observation_space = UnicodeText()
    action_space = UnicodeText()

    def reset(self, *, seed=None, options=None):
        """Return nothing."""
        super().reset(seed=seed)
        return "", {}

    def step(self, action):
        """End the episode."""
        return "", 0.0, True, False, {}


def best_us(function: Callable[[], object], *, calls: int = 1000, repeats: int = 15) -> float:
    """CPU microseconds of one call, in the best of several repeats."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        for _ in range(calls):
            function()
        times.append(time.thread_time() - start)
    return min(times) / calls * 1e6


def episode(env: gym.Env[str, str], seed: int | None = None) -> Callable[[], object]:
    """One reset and one step, as a function."""

    def play():
        env.reset(seed=seed)
        env.step(ANSWER)

    return play


def one_for_each_problem(episodes: int = 100, repeats: int = 3) -> float:
    """Episodes a second when each has an environment of its own, made and closed; the best of several repeats."""

    def play():
        env = gym.make("rstar2/MathTool-v0")
        env.reset(seed=1)
        status = env.step(CALL)[4]["tool_calls"][0]["status"]
        assert status == "ok", f"the tool call ended as {status!r}, so its time says nothing"
        env.step(ANSWER)
        env.close()

    play()  # which starts the sandbox
    best = 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(episodes):
            play()
        best = max(best, episodes / (time.perf_counter() - start))
    return best


def import_ms(statement: str, repeats: int = 7) -> float:
    """Milliseconds that a statement takes in a fresh interpreter, the median of several."""
    program = f"import time; t = time.process_time(); {statement}; print((time.process_time() - t) * 1000)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(repeats)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def main() -> int:
    """Measure, print the table, and fail when the target is missed."""
    problem = [{"question": "What is 3 + 4?", "answer": "7"}]
    one = gym.make("rstar2/MathTool-v0", problems=problem)
    default = gym.make("rstar2/MathTool-v0")
    families = default.unwrapped.problems
    rng = default.unwrapped.np_random
    floor, floor_seeded = best_us(episode(Nothing())), best_us(episode(Nothing(), seed=1))
    rows = {
        "empty gymnasium.Env: reset + step, µs": floor,
        "empty gymnasium.Env, reset(seed=), µs": floor_seeded,
        "MathTool unwrapped, one problem, µs": best_us(episode(one.unwrapped)),
        "MathTool unwrapped, reset(seed=), µs": best_us(episode(one.unwrapped, seed=1)),
        "MathTool as gym.make gives it, µs": best_us(episode(one)),
        "MathTool, bundled family of problems, µs": best_us(episode(default)),
        "of that: generating the problem, µs": best_us(lambda: families.sample(rng)),
    }
    own = rows["MathTool unwrapped, one problem, µs"] - floor
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(one.unwrapped, skip_render_check=True)
    rows["check_env, ms"] = (time.perf_counter() - start) * 1000
    gymnasium_ms, package_ms = import_ms("import gymnasium"), import_ms("import rstar2_env")
    rows |= {
        "import gymnasium, ms": gymnasium_ms,
        "import rstar2_env (gymnasium included), ms": package_ms,
        "own time of import, ms": package_ms - gymnasium_ms,
        "own time of reset + step, µs": own,
        "an environment for each problem, episodes/s": one_for_each_problem(),
    }
    print(
        f"rstar2-env {rstar2_env.__version__}, Gymnasium {gym.__version__}, Python {platform.python_version()}, "
        f"load average {os.getloadavg()[0]:.2f}"
    )
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value:8.1f}")
    verdict = "within" if own <= TARGET_US else "ABOVE"
    print(f"{verdict} the target of {TARGET_US:.0f} µs")
    rate = rows["an environment for each problem, episodes/s"]
    enough = rate >= TARGET_EPISODES_S
    print(f"{'reaches' if enough else 'MISSES'} the target of {TARGET_EPISODES_S:.0f} episodes/s")
    print(json.dumps({name: round(value, 2) for name, value in rows.items()}, ensure_ascii=False))
    return 0 if own <= TARGET_US and enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
