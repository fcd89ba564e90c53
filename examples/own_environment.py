"""An environment of your own: problems, a tool, a verifiable answer; one class and one `register_env`.

Run: python examples/own_environment.py
or:  rstar2 validate examples/own_environment.py
"""

import numpy as np

from rstar2_env import Draft, FunctionTool, GoldGrader, ProceduralSource, ToolEnv, make_env, register_env
from rstar2_env.testing import check_text_env


def draw(rng: np.random.Generator) -> Draft:
    """One problem; its key, the number alone, decides which split it belongs to."""
    n = int(rng.integers(100, 10_000))
    answer = sum(n % divisor == 0 for divisor in range(1, n + 1))
    return Draft(f"How many positive divisors does {n} have?", str(answer), key=str(n))


def smallest_factor(n: int) -> int:
    """The smallest prime factor of n, a whole number from 2 to 10000."""
    if not 2 <= n <= 10_000:
        raise ValueError("n must be from 2 to 10000")
    return next(factor for factor in range(2, n + 1) if n % factor == 0)


class DivisorsEnv(ToolEnv):
    """Count the divisors of a number; 1 at the end for the right count, else 0."""

    def __init__(self, *, split: str = "train", **options) -> None:
        problems = ProceduralSource("divisors", draw, split)
        super().__init__(problems=problems, tools=[FunctionTool(smallest_factor)], grader=GoldGrader(), **options)


register_env("mine/Divisors-v0", DivisorsEnv)

if __name__ == "__main__":
    env = make_env("mine/Divisors-v0")
    question, info = env.reset(seed=1)
    print(question)
    print(env.step(env.unwrapped.dialect.format_call("smallest_factor", {"n": 91}))[0])
    env.close()
    print("keeps the contract:", ", ".join(check_text_env("mine/Divisors-v0")))
