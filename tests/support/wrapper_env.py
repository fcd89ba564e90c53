"""A small environment with a stub tool, for the wrappers' tests."""

from rstar2_env.dialects import make_dialect
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.testing import StubTool

RSTAR2 = make_dialect("rstar2")
PROBLEMS = [{"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(20)]


def make(plan=None, **options):
    return ToolEnv(problems=PROBLEMS, tools=[StubTool(plan)], grader=GoldGrader(), **options)


def call(**arguments):
    return RSTAR2.format_call("stub", arguments)


def answer(text):
    return RSTAR2.format_answer(str(text))


def right(env):
    return answer(env.unwrapped.problem.answer)
