"""rstar2/MathNotebook-v0: cells of an episode share their variables, episodes share nothing, wrappers compose."""

import pickle

import gymnasium as gym
import pytest
from cell_sandbox import CellSandbox

import rstar2_env  # noqa: F401  # registers the id
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.testing import StubSandbox, check_text_env
from rstar2_env.tools import NOTEBOOK_TOOL_NAME
from rstar2_env.wrappers import FaultInjection, SaveState, ToolBudget

ID = "rstar2/MathNotebook-v0"
RSTAR2 = make_dialect("rstar2")


def cell(code):
    return RSTAR2.format_call(NOTEBOOK_TOOL_NAME, {"code": code})


@pytest.fixture
def sandbox():
    return CellSandbox()


@pytest.fixture
def env(sandbox):
    env = gym.make(ID, sandbox=sandbox)
    yield env
    env.close()


def test_it_keeps_the_contract():
    check_text_env(ID, actions=[cell("x = 1"), cell("x")], sandbox=StubSandbox("1\n"))


def test_cells_share_their_variables_also_within_a_turn(env):
    env.reset(seed=1)
    env.step(cell("x = 20"))
    text, *_, info = env.step(cell("x += 1") + cell("x"))
    assert "21" in text
    assert [call["session"] for call in info["tool_calls"]] == ["kept", "kept"]


def test_an_answer_ends_the_session(env, sandbox):
    env.reset(seed=1)
    env.step(cell("x = 20"))
    assert len(sandbox.sessions) == 1
    env.step(RSTAR2.format_answer("1"))
    assert not sandbox.sessions


def test_a_reset_ends_the_session_and_the_next_episode_knows_nothing_of_it(env, sandbox):
    env.reset(seed=1)
    env.step(cell("x = 20"))
    env.reset(seed=1)
    assert not sandbox.sessions
    *_, info = env.step(cell("x"))
    assert (info["tool_calls"][0]["error_type"], info["tool_calls"][0]["session"]) == ("NameError", "new")


def test_closing_ends_the_session(env, sandbox):
    env.reset(seed=1)
    env.step(cell("x = 20"))
    env.close()
    assert not sandbox.sessions


def test_a_session_that_the_cell_ended_counts_as_the_policys_error(env):
    env.reset(seed=1)
    env.step(cell("x = 1"))
    text, *_, info = env.step(cell("raise SystemExit"))
    assert "the next cell starts in a fresh notebook" in text
    assert info["tool_calls"][0]["session"] == "ended"
    *_, info = env.step(RSTAR2.format_answer("1"))
    assert (info["tool_errors"], info["tool_calls_total"]) == (1, 2)


def test_a_session_that_stays_lost_makes_the_episode_unavailable():
    env = gym.make(ID, sandbox=StubSandbox([ToolStatus.OK, ToolStatus.UNAVAILABLE]))
    env.reset(seed=1)
    env.step(cell("x = 1"))
    _, _, terminated, truncated, info = env.step(cell("x"))
    assert (terminated, truncated, info["end"]) == (False, True, "unavailable")
    assert (info["tool_errors"], info["tool_calls_total"]) == (0, 1)


def test_a_copy_in_the_middle_of_an_episode_goes_on_with_the_same_variables(env):
    env.reset(seed=1)
    env.step(cell("x = 20"))
    copy = pickle.loads(pickle.dumps(env))
    assert copy.step(cell("x"))[0] == env.step(cell("x"))[0]


def test_a_saved_turn_is_restored_with_its_variables_and_branches_do_not_meet(sandbox):
    env = SaveState(gym.make(ID, sandbox=sandbox))
    env.reset(seed=1)
    env.step(cell("x = [1]"))
    here = env.save()
    assert "[1, 2]" in env.step(cell("x.append(2)\nx"))[0]
    env.restore(here)
    assert "[1, 3]" in env.step(cell("x.append(3)\nx"))[0]
    assert len(sandbox.sessions) == 1


def test_injected_faults_and_budgets_act_and_the_cell_still_ran(sandbox):
    env = ToolBudget(FaultInjection(gym.make(ID, sandbox=sandbox), {"lost": 1.0}), calls=2)
    env.reset(seed=1)
    *_, info = env.step(cell("x = 20\nprint(x)"))
    assert (info["tool_calls"][0]["fault"]["kind"], info["tool_calls"][0]["session"]) == ("lost", "new")
    *_, info = env.step(cell("print(x)"))
    assert info["tool_calls"][0]["fault"]["own_status"] == "ok"
    env.step(cell("x = 3"))
    assert len(sandbox.jobs) == 2


def test_every_sub_environment_of_the_vector_form_has_its_own_session(sandbox):
    envs = gym.make_vec(ID, num_envs=3, vectorization_mode="vector_entry_point", sandbox=sandbox)
    envs.reset(seed=1)
    envs.step([cell(f"x = {number}") for number in range(3)])
    assert len(sandbox.sessions) == 3
    texts, *_ = envs.step([cell("x * 10")] * 3)
    assert [str(10 * number) in text for number, text in enumerate(texts)] == [True] * 3
    envs.close()
    assert not sandbox.sessions
