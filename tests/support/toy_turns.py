"""What the tests of the turn loop share: a toy environment, its calls and answers, an episode played."""

from rstar2_env.dialects import make_dialect
from rstar2_env.testing import ToyEnv

RSTAR2 = make_dialect("rstar2")
GOLD = {"options": {"problem_id": "p5"}}
RIGHT = RSTAR2.format_answer("10")
WRONG = RSTAR2.format_answer("11")


def call(n=0, name="stub"):
    return RSTAR2.format_call(name, {"n": n})


def make(plan=None, **options):
    """A ToyEnv and its tool."""
    env = ToyEnv(plan, **options)
    return env, env.tool


def play(env, *turns):
    """Reset to problem p5 (gold 10), play the turns, return the last step."""
    env.reset(seed=1, **GOLD)
    step = None
    for turn in turns:
        step = env.step(turn)
    return step


def statuses(info):
    return [each["status"] for each in info["tool_calls"]]
