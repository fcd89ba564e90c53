"""rstar2/MathFence-v0 from end to end, with real programs in the real local sandbox."""

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the id
from rstar2_env.testing import StubSandbox, check_text_env

ID = "rstar2/MathFence-v0"
PROBLEM = [{"id": "p", "question": "What is 6 * 7?", "answer": "42"}]


@pytest.fixture
def env(sandbox):
    made = gym.make(ID, problems=PROBLEM, sandbox=sandbox, limits={"wall_s": 20})
    made.reset(seed=1)
    yield made
    made.close()


def test_a_program_is_run_and_its_output_comes_back_in_a_fence(env):
    text, reward, terminated, truncated, info = env.step("Let me see.\n```python\nprint(6 * 7)\n```\n")
    assert text == "```output\n42\n```\n"
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["role"], info["tool_calls"][0]["status"]) == ("user", "ok")
    _, reward, terminated, _, info = env.step("So it is \\boxed{42}.")
    assert (reward, terminated, info["end"], info["answer_tags"]) == (1.0, True, "answered", 1)


def test_what_a_program_prints_earns_nothing(env):
    env.step("```python\nprint('\\\\boxed{42}')\n```\n")
    _, reward, terminated, _, info = env.step("I give up.")
    assert (reward, terminated, info["end"]) == (0.0, True, "no_answer")


@pytest.mark.parametrize(
    ("turn", "status"),
    [
        ("```python\nprint(1)", "malformed"),
        ("```python\n1 +\n```", "syntax_error"),
        ("```python\n1 / 0\n```", "exception"),
        ("```python\nx = 1\n```", "empty"),
    ],
)
def test_every_way_to_fail_has_its_status(env, turn, status):
    *_, info = env.step(turn)
    assert [call["status"] for call in info["tool_calls"]] == [status]


def test_the_protocol_is_in_the_system_message(sandbox):
    _, info = gym.make(ID, problems=PROBLEM, sandbox=sandbox).reset(seed=1)
    assert "```python" in info["system"]


def test_it_keeps_the_contract_with_turns_of_its_own():
    actions = ["```python\nprint(1)\n```", "```python\nprint(1)", "\\boxed{42}", "```python\n1\n```\\boxed{42}"]
    check_text_env(ID, sandbox=StubSandbox(), problems=PROBLEM, actions=actions)
