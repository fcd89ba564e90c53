"""Claims about agents: found by name, each plays as it says, and none but the reference players knows the problem."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import re
import subprocess
import sys

import gymnasium as gym
import pytest
from flaky_server import flaky
from places import ROOT

from rstar2_env import FunctionTool, GoldGrader, ToolEnv
from rstar2_env.agents import AGENTS, InformedAgent, make
from rstar2_env.agents.human import Human
from rstar2_env.core.errors import ConfigurationError, MissingExtraError, UnknownNameError
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.problems import Problem
from rstar2_env.testing import AGENT_CHECKS, StubSandbox, check_agent

PROBLEM = Problem(
    "p", "16 eggs, less 3, less 4, at 2 each?", "18", meta={"calculations": ["16-3-4=9", "9*2=18"], "expression": "9*2"}
)


@pytest.fixture
def sandbox() -> StubSandbox:
    return StubSandbox("1\n")


@pytest.fixture
def env(sandbox):
    env = gym.make("rstar2/MathTool-v0", sandbox=sandbox)
    yield env
    env.close()


def programs(sandbox: StubSandbox) -> list[str]:
    return [job.code for job in sandbox.jobs]


def test_every_agent_is_found_by_the_name_of_its_file():
    files = {path.stem for path in (ROOT / "agents").rglob("*.py") if not path.stem.startswith("_")} - {"base"}
    assert files <= set(AGENTS.names())


def typing() -> Human:
    """A person who types the same turn again and again."""
    return Human(io.StringIO("thinking\n<answer>\\boxed{18}</answer>\n.\n" * 500), io.StringIO())


THEIRS = [name for name in AGENTS.names() if hasattr(AGENTS.get(name), "framework")]
"""Agents of other frameworks: tests/bridges has the same test of each, with the framework."""


LOCAL = ["logit_transfer", "policy"]
"""Agents that load models: test_local_models.py has the same test of each, with tiny ones."""


@pytest.mark.parametrize("name", sorted(set(AGENTS.names()) - {*THEIRS, *LOCAL}))
def test_every_agent_keeps_the_contract(name):
    reply = {"choices": [{"message": {"role": "assistant", "content": "<answer>\\boxed{18}</answer>"}}]}
    with flaky(lambda asked, number: (200, reply)) as endpoint:
        options = {
            "openai": {"base_url": endpoint.address, "model": "none"},
            "scripted": {"turns": ["<answer>\\boxed{18}</answer>"] * 3},
        }
        if "agent" in inspect.signature(AGENTS.get(name)).parameters:
            options[name] = {"agent": "random_text:answers=0.3"}
        assert check_agent(typing if name == "human" else name, **options.get(name, {})) == list(AGENT_CHECKS)


@pytest.mark.parametrize("name", THEIRS)
def test_an_agent_of_another_framework_says_what_to_install(name, monkeypatch):
    for package in ("agents", "smolagents", "langchain_core"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"rstar2-env\[{name.replace('_', '-')}\]"):
        make(name, base_url="http://127.0.0.1:1/v1", model="m")


@pytest.mark.parametrize("name", ["calculations", "oracle"])
def test_every_reference_player_says_that_it_is_told_the_problem(name):
    assert isinstance(make(name), InformedAgent)


def test_only_the_reference_players_are_told_the_problem():
    told = {name for name in AGENTS.names() if getattr(AGENTS.get(name), "needs_problem", False)}
    assert told == {"calculations", "oracle"}


def test_no_agent_reads_the_problem_from_the_environment():
    for path in (ROOT / "agents").rglob("*.py"):
        assert not re.search(r"unwrapped|(?<!rstar2_env\.)\benv\.", path.read_text("utf-8")), path


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'scripted'"):
        make("script")


def test_an_unknown_option_suggests_the_nearest():
    with pytest.raises(ConfigurationError, match=r"agent 'oracle'.*Did you mean 'corrupt'"):
        make("oracle", corupt=True)


def test_the_agents_are_found_without_what_models_need():
    program = (
        "import sys; from rstar2_env.agents import AGENTS; AGENTS.names(); "
        "print(sorted({'torch', 'transformers', 'trl', 'vllm', 'ray'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_folder_refuses_to_be_imported_under_another_name():
    spec = importlib.util.spec_from_file_location("agents", ROOT / "agents" / "__init__.py")
    with pytest.raises(ImportError, match=r"rstar2_env\.agents"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_calculations_runs_each_and_answers(env, sandbox):
    episode = play_episode(env, make("calculations"), problem=PROBLEM)
    assert programs(sandbox) == ["print(16-3-4)", "print(9*2)"]
    assert (episode.turns, episode.answer, episode.correct) == (3, "18", True)


def test_calculations_can_share_a_turn(env, sandbox):
    episode = play_episode(env, make("calculations", calls_per_turn=5), problem=PROBLEM)
    assert len(programs(sandbox)) == 2
    assert episode.turns == 2


@pytest.mark.parametrize("name", ["calculations", "oracle"])
def test_a_corrupt_reference_player_runs_the_same_and_answers_otherwise(env, sandbox, name):
    play_episode(env, make(name), problem=PROBLEM)
    honest = programs(sandbox)
    episode = play_episode(env, make(name, corrupt=True), problem=PROBLEM)
    assert programs(sandbox) == honest * 2
    assert (episode.answer, episode.reward) == ("19", 0.0)


@pytest.mark.parametrize("name", ["calculations", "oracle"])
def test_a_problem_without_a_worked_solution_is_answered_at_once(env, sandbox, name):
    episode = play_episode(env, make(name), problem=Problem("bare", "1+1?", "2"))
    assert programs(sandbox) == []
    assert (episode.turns, episode.correct) == (1, True)


def test_the_oracle_runs_the_expression_unless_told_not_to(env, sandbox):
    assert play_episode(env, make("oracle", use_tool=False), problem=PROBLEM).correct
    assert programs(sandbox) == []
    assert play_episode(env, make("oracle"), problem=PROBLEM).correct
    assert programs(sandbox) == ["print(9*2)"]


def test_a_script_is_played_in_order_and_its_end_is_an_error(env):
    call = make_dialect("rstar2").format_call("nope", {})
    agent = make("scripted", turns=[call, "<answer>\\boxed{18}</answer>"])
    assert play_episode(env, agent, problem=PROBLEM).statuses == [ToolStatus.UNKNOWN_TOOL]
    with pytest.raises(ConfigurationError, match="1 turns, but the episode is not over"):
        play_episode(env, make("scripted", turns=[call]), problem=PROBLEM)


@pytest.mark.parametrize("turns", [[], "one", [1]])
def test_a_script_that_is_no_list_of_texts_is_refused(turns):
    with pytest.raises(ConfigurationError, match="turns must be a list of at least 1 string, not"):
        make("scripted", turns=turns)


@pytest.mark.parametrize("options", [{"length": 0}, {"answers": -0.1}, {"answers": 0.8, "calls": 0.4}])
def test_noise_out_of_its_range_is_refused(options):
    with pytest.raises(ConfigurationError):
        make("random_text", **options)


def test_noise_is_the_same_for_the_same_seed_and_never_solves_a_hard_problem(env):
    hard = Problem("hard", "what?", "123456789")
    agent = make("random_text", answers=0.2, calls=0.1)
    episodes = [play_episode(env, agent, seed=seed, problem=hard) for seed in range(60)]
    assert not any(episode.correct for episode in episodes)
    assert {episode.end for episode in episodes} >= {"answered", "no_answer"}
    assert play_episode(env, agent, seed=4, problem=hard).record() == episodes[4].record()


def test_noise_is_written_for_whatever_tools_an_environment_has():
    def half(number: int) -> int:
        """Half of an even number."""
        return number // 2

    problems = [{"question": "half of 8?", "answer": "4"}]
    with ToolEnv(problems=problems, tools=[FunctionTool(half)], grader=GoldGrader()) as env:
        agent = make("random_text", answers=0, calls=0.5)
        episodes = [play_episode(env, agent, seed=seed) for seed in range(5)]
    called = [call for episode in episodes for step in episode.steps for call in step.info.get("tool_calls", ())]
    assert {call["name"] for call in called if call["status"] == "invalid_arguments"} == {"half"}


def test_a_person_sees_what_the_policy_sees_and_types_turns(env):
    call = make_dialect("rstar2").format_call("nope", {})
    typed = io.StringIO(f"thinking\n{call}\n.\n<answer>\\boxed{{18}}</answer>\n.\n")
    shown = io.StringIO()
    episode = play_episode(env, Human(typed, shown), problem=PROBLEM)
    assert episode.correct
    assert episode.messages[2].content == f"thinking\n{call}"
    for message in episode.messages:
        assert message.role == "assistant" or message.content in shown.getvalue()


def test_a_person_is_shown_control_characters_as_escapes():
    shown = io.StringIO()
    human = Human(io.StringIO(".\n"), shown)
    human.reset("", {"problem_id": "a\x1b[2J", "system": "\x9b31m"}, seed=0)
    human.act("\u202eb\x07", {})
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown.getvalue())
    for escaped in ("a\\x1b[2J", "\\x9b31m", "\\u202eb\\x07"):
        assert escaped in shown.getvalue()


def test_a_person_who_closes_the_input_gives_up(env):
    with pytest.raises(KeyboardInterrupt):
        play_episode(env, Human(io.StringIO("half a turn"), io.StringIO()), problem=PROBLEM)
