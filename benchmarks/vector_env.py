"""Sub-environments whose tool waits, stepped by the threaded, the synchronous and the asynchronous vector form.

Run as ``python benchmarks/vector_env.py [--envs 64] [--wait-ms 20] [--steps 5]``. Prints the seconds of a step and how
many times faster each is than ``SyncVectorEnv``. Target: the threaded form at least 20 times with 64 and 20 ms.
"""

import argparse
import statistics
import time
from functools import partial

from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from rstar2_env.dialects import make_dialect
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.env.vector import ThreadVectorEnv
from rstar2_env.testing import StubTool

CALL = make_dialect("rstar2").format_call("stub", {"x": 1})


def one(wait_s: float):
    """An environment whose tool waits."""
    return ToolEnv(problems="arithmetic", tools=[StubTool(wait_s=wait_s)], grader=GoldGrader(), max_turns=10_000)


def measure(kind, make, envs: int, steps: int) -> float:
    """Seconds of one step, the median."""
    vector = kind([make] * envs)
    vector.reset(seed=0)
    vector.step([CALL] * envs)  # threads and processes start here
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        vector.step([CALL] * envs)
        times.append(time.perf_counter() - start)
    vector.close()
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--wait-ms", type=float, default=20)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--no-async", action="store_true", help="leave the one process per environment out")
    options = parser.parse_args()
    make = partial(one, options.wait_ms / 1000)
    kinds = {"SyncVectorEnv": SyncVectorEnv, "ThreadVectorEnv": ThreadVectorEnv}
    if not options.no_async:
        kinds["AsyncVectorEnv"] = partial(AsyncVectorEnv, shared_memory=False)
    seconds = {name: measure(kind, make, options.envs, options.steps) for name, kind in kinds.items()}
    print(f"{options.envs} sub-environments, a tool that waits {options.wait_ms:g} ms, median of {options.steps} steps")
    for name, spent in seconds.items():
        print(f"{name:16} {spent * 1000:8.1f} ms a step  {seconds['SyncVectorEnv'] / spent:6.1f} x")


if __name__ == "__main__":
    main()
