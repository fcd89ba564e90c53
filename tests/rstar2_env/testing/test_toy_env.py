"""ToyEnv is a conforming environment whose tool follows a plan."""

from rstar2_env.core.status import ToolStatus
from rstar2_env.testing import CHECKS, StubTool, ToyEnv, check_text_env


def test_it_keeps_the_contract():
    assert check_text_env(ToyEnv, skip=["linear_time"]) == [name for name in CHECKS if name != "linear_time"]


def test_its_tool_follows_the_plan():
    env = ToyEnv([ToolStatus.TIMEOUT])
    env.reset(options={"problem_id": "p5"})
    assert env.step(env.dialect.format_call("stub", {}))[4]["tool_calls"][0]["status"] == "timeout"
    assert len(env.tool.calls) == 1
    assert env.step(env.dialect.format_answer("10"))[1] == 1.0


def test_options_replace_its_parts():
    other = StubTool(name="other")
    env = ToyEnv(tools=[other], problems=[{"question": "Why?", "answer": "because"}])
    text, info = env.reset(seed=1)
    assert text.endswith("Why?")
    assert info["tools"] == [other.spec.schema()]
