"""The threaded vector form returns what ``SyncVectorEnv`` returns, while all sub-environments wait together."""

import threading
import time
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError, EpisodeOverError
from rstar2_env.dialects import make_dialect
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.env.vector import ThreadVectorEnv, add_vector_forms, make_threaded, vector_entry_point
from rstar2_env.testing import StubTool
from rstar2_env.wrappers import ToolBudget

RSTAR2 = make_dialect("rstar2")
CALL = RSTAR2.format_call("stub", {"x": 1})
PROBLEMS = [{"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(9)]
IDS = sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2")


def one(plan=None, **options):
    return ToolEnv(problems=PROBLEMS, tools=[StubTool(plan, **options)], grader=GoldGrader(), max_turns=4)


def drawn(arguments, context):
    return f"{context.seed} {context.number}"


def plain(value):
    """Infos as data that can be compared."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def script(number, envs):
    rng = np.random.default_rng(number)
    turns = [CALL, CALL + CALL, "no", RSTAR2.format_answer("4")]
    return [turns[int(rng.integers(4))] for _ in range(envs)]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_it_returns_what_sync_returns(mode):
    sync = SyncVectorEnv([partial(one, drawn)] * 5, autoreset_mode=mode)
    ours = ThreadVectorEnv([partial(one, drawn)] * 5, autoreset_mode=mode)
    for seed in (3, [9, 8, 7, 6, 5]):
        assert plain(sync.reset(seed=seed)) == plain(ours.reset(seed=seed))
        for number in range(12):
            assert plain(sync.step(script(number, 5))) == plain(ours.step(script(number, 5)))
    options = {"problem_id": "p3"}
    assert plain(sync.reset(options=dict(options))) == plain(ours.reset(options=dict(options)))
    ours.close()


def test_disabled_autoreset_takes_a_mask_as_sync_does():
    sync = SyncVectorEnv([partial(one, drawn)] * 3, autoreset_mode=AutoresetMode.DISABLED)
    ours = ThreadVectorEnv([partial(one, drawn)] * 3, autoreset_mode=AutoresetMode.DISABLED)
    turns = ["no", CALL, "no"]
    for envs in (sync, ours):
        envs.reset(seed=1)
        envs.step(turns)
    with pytest.raises(EpisodeOverError, match="0, 2"):
        ours.step(turns)
    mask = np.array([True, False, True])
    assert plain(sync.reset(options={"reset_mask": mask})) == plain(ours.reset(options={"reset_mask": mask}))
    assert plain(sync.step([CALL] * 3)) == plain(ours.step([CALL] * 3))
    ours.close()


@pytest.mark.parametrize("mask", [[True, False, False], np.array([1, 0, 0]), np.array([True]), np.zeros(3, bool)])
def test_a_mask_that_does_not_fit_is_refused_as_gymnasium_does(mask):
    ours = ThreadVectorEnv([one] * 3)
    ours.reset(seed=1)
    with pytest.raises((TypeError, ValueError)):
        ours.reset(options={"reset_mask": mask})


def test_all_sub_environments_are_in_their_tools_at_once():
    # Nobody gets through the barrier before all eight are there.
    barrier = threading.Barrier(8, timeout=30)

    def meet(arguments, context):
        barrier.wait()
        return "met"

    ours = ThreadVectorEnv([partial(one, meet)] * 8)
    ours.reset(seed=1)
    texts, *_ = ours.step([CALL] * 8)
    assert all("met" in text for text in texts)
    ours.close()


def test_waiting_together_is_much_faster_than_one_after_the_other():
    times = {}
    for kind in (SyncVectorEnv, ThreadVectorEnv):
        envs = kind([partial(one, "x", wait_s=0.05)] * 32)
        envs.reset(seed=1)
        start = time.perf_counter()
        envs.step([CALL] * 32)
        times[kind] = time.perf_counter() - start
        envs.close()
    # About 30 times when nobody else is on the machine; see benchmarks/vector_env.py for the real figure.
    assert times[SyncVectorEnv] > 3 * times[ThreadVectorEnv]


def test_an_error_comes_home_as_itself_after_all_have_finished():
    done = []

    def fail(arguments, context):
        if not done:
            done.append(1)
            raise RuntimeError("tool bug")
        return "fine"

    ours = ThreadVectorEnv([partial(one, fail)] * 3)
    ours.reset(seed=1)
    with pytest.raises(RuntimeError, match="tool bug"):
        ours.step([CALL] * 3)
    texts, _ = ours.reset(seed=1)
    assert texts == SyncVectorEnv([one] * 3).reset(seed=1)[0]
    ours.close()


def test_a_wrong_number_of_actions_is_refused():
    ours = ThreadVectorEnv([one] * 3)
    ours.reset(seed=1)
    with pytest.raises((ConfigurationError, ValueError)):
        ours.step([CALL] * 2)


@pytest.mark.parametrize("options", [{"num_envs": 0}, {"threads": 0}])
def test_no_environments_or_no_threads_are_refused(options):
    with pytest.raises(ConfigurationError):
        make_threaded("rstar2/MathTool-v0", **{"num_envs": 2, **options})


def test_every_registered_id_can_be_given_a_vector_form_and_its_spec_stays_json():
    add_vector_forms()
    for env_id in IDS:
        spec = gym.spec(env_id)
        assert spec.vector_entry_point == vector_entry_point(env_id)
        assert gym.envs.registration.EnvSpec.from_json(spec.to_json()).vector_entry_point == vector_entry_point(env_id)


@pytest.mark.parametrize("env_id", IDS)
def test_make_vec_plays_every_id_as_sync_does(env_id):
    add_vector_forms()
    ours = gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point")
    sync = gym.make_vec(env_id, num_envs=3, vectorization_mode="sync")
    assert isinstance(ours.unwrapped, ThreadVectorEnv)
    assert plain(ours.reset(seed=5)) == plain(sync.reset(seed=5))
    turns = ["I do not know.", RSTAR2.format_answer("5"), RSTAR2.format_call("no_such_tool", {})]
    for _ in range(3):
        assert plain(ours.step(turns)) == plain(sync.step(turns))
    ours.close()
    sync.close()


def test_wrappers_go_around_every_sub_environment():
    ours = make_threaded("rstar2/MathTool-v0", 3, wrappers=[lambda env: ToolBudget(env, 0)])
    _, infos = ours.reset(seed=1)
    assert list(infos["tool_calls_left"]) == [0, 0, 0]
    *_, infos = ours.step([CALL] * 3)
    assert [calls[0]["status"] for calls in infos["tool_calls"]] == ["blocked"] * 3
    ours.close()


def test_an_autoreset_mode_goes_through_make_vec():
    add_vector_forms()
    ours = gym.make_vec(
        "rstar2/MathTool-v0", 2, vectorization_mode="vector_entry_point", autoreset_mode="SameStep", max_turns=2
    )
    assert ours.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    ours.close()
