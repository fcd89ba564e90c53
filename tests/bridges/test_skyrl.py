"""skyrl-gym, both ways, against the real package."""

from __future__ import annotations

import random

import pytest
import skyrl_gym
from bridged import SCRIPTS, SUMS, answer, direct
from page_blocks import fenced
from places import DOCS

from rstar2_env.adapters import skyrl
from rstar2_env.core.errors import ConfigurationError, Rstar2Error, ServiceError
from rstar2_env.testing import check_text_env

ROWS = [
    {
        "prompt": [
            {"role": "system", "content": "Think."},
            {"role": "user", "content": f"What is {n} + 1? Answer with #### and the number."},
        ],
        "reward_spec": {"ground_truth": str(n + 1)},
        "extra_info": {},
    }
    for n in range(5)
]


@pytest.fixture(scope="module", autouse=True)
def registered():
    skyrl.register("rstar2_sums", SUMS)
    skyrl.register("rstar2_game", "rstar2/TicTacToe-v0")
    yield
    skyrl_gym.envs.registration.deregister("rstar2_sums")
    skyrl_gym.envs.registration.deregister("rstar2_game")


def theirs(row, turns):
    """An episode of ours, made and played by skyrl-gym, in the shape of ``direct``."""
    env = skyrl_gym.make(row["env_class"], env_config={}, extras=dict(row))
    messages, info = env.init(row["prompt"])
    trace = [[messages[-1]["content"], info]]
    for turn in turns:
        made = env.step(turn)
        told = dict(made["metadata"])
        shown = "".join(one["content"] for one in made["observations"])
        trace.append([shown, made["reward"], told.pop("terminated"), told.pop("truncated"), told])
        if made["done"]:
            break
    return trace, env


@pytest.mark.parametrize("name", ["right", "wrong", "malformed", "no answer", "turns"])
def test_an_episode_of_ours_is_the_one_that_is_played_directly(name):
    row = {"prompt": [], "env_class": "rstar2_sums", "seed": 4, "problem_id": "p3"}
    trace, env = theirs(row, SCRIPTS[name])
    assert trace == direct(SUMS, 4, SCRIPTS[name], "p3")
    env.close()


def test_the_page_on_bridges_shows_what_works():
    (block,) = [block for block in fenced(DOCS / "bridge-environments.md") if "skyrl.register" in block.text]
    scope = {}
    exec(block.text.replace("1000", "5"), scope)
    assert len(scope["rows"]) == 5
    row = scope["rows"][0]
    env = skyrl_gym.make("rstar2_math", env_config={}, extras=dict(row))
    skyrl_gym.envs.registration.deregister("rstar2_math")
    assert env.init(row["prompt"])[0]
    env.close()


def test_statuses_become_metrics_that_skyrl_averages():
    row = {"prompt": [], "env_class": "rstar2_sums", "seed": 4, "problem_id": "p3"}
    metrics = [theirs(row, SCRIPTS[name])[1].get_metrics() for name in ("right", "wrong")]
    assert metrics[0] == {"turns": 3, "tool_calls": 2, "tool_errors": 1, "correct": 1.0}
    assert metrics[1] == {"turns": 2, "tool_calls": 1, "tool_errors": 1, "correct": 0.0}
    mean = skyrl.SkyRLServed.aggregate_metrics(metrics)
    assert mean["tool_errors"] == 1.0
    assert mean["correct"] == 0.5


def test_injected_faults_are_told_apart_and_are_no_errors_of_the_policy():
    skyrl.register("rstar2_faults", SUMS, wrappers=["fault_injection:rate=1,kinds=timeout"])
    row = {"prompt": [], "env_class": "rstar2_faults", "seed": 4, "problem_id": "p3"}
    trace, env = theirs(row, SCRIPTS["right"])
    skyrl_gym.envs.registration.deregister("rstar2_faults")
    assert [(one["status"], one["injected"]) for one in trace[1][4]["tool_calls"]] == [("timeout", True)]
    assert env.get_metrics()["tool_errors"] == 1, "the second call fails by itself, so no fault lands"


def test_an_unavailable_episode_raises_rather_than_earn_nothing():
    row = {"prompt": [], "env_class": "rstar2_sums", "seed": 4, "problem_id": "p3"}
    with pytest.raises(ServiceError, match="not available"):
        theirs(row, SCRIPTS["unavailable"])


def test_the_rows_name_what_to_play_and_a_row_that_names_nothing_is_refused():
    made = skyrl.rows("rstar2_game", "rstar2/TicTacToe-v0", 3)
    assert made == skyrl.rows("rstar2_game", "rstar2/TicTacToe-v0", 3)
    assert len({row["problem_id"] for row in made}) == 3
    for row in made:
        trace, env = theirs(row, ())
        assert trace == direct("rstar2/TicTacToe-v0", row["seed"], (), row["problem_id"])
        env.close()
    with pytest.raises(ConfigurationError, match="seed or problem_id"):
        theirs({"prompt": [], "env_class": "rstar2_game"}, ())


def test_an_episode_of_theirs_is_the_one_that_is_played_directly():
    ours = skyrl.SkyRLEnv(env="gsm8k_multi_turn", rows=ROWS, max_turns=4)
    for number, turns in ((0, ("#### 5", "#### 1")), (3, ("hm", "#### 9", "#### 8", "#### 7"))):
        extras = {key: value for key, value in ROWS[number].items() if key != "prompt"} | {"max_turns": 4}
        env = skyrl_gym.make("gsm8k_multi_turn", env_config={}, extras=extras)
        env.init(ROWS[number]["prompt"])
        text, info = ours.reset(options={"problem_id": f"skyrl/gsm8k_multi_turn/{number}"})
        assert (info["system"], text) == ("Think.", ROWS[number]["prompt"][1]["content"])
        for turn in turns:
            expected = env.step(turn)
            text, reward, terminated, truncated, info = ours.step(turn)
            assert text == "".join(one["content"] for one in expected["observations"])
            assert (reward, terminated, truncated) == (expected["reward"], expected["done"], False)
        assert info["end"] == "answered"
        assert info["correct"] is (number == 0)


def test_theirs_keeps_our_contract():
    made = check_text_env(lambda: skyrl.SkyRLEnv(env="gsm8k_multi_turn", rows=ROWS), actions=["#### 1"])
    assert len(made) == 10


def test_an_exception_of_theirs_is_unavailable_and_says_what_it_was():
    env = skyrl.SkyRLEnv(env="gsm8k", rows=ROWS)
    env.reset(seed=0)
    env._theirs.ground_truth = property()
    env._theirs.step = lambda turn: 1 / 0
    _, reward, terminated, truncated, info = env.step("#### 1")
    assert (reward, terminated, truncated, info["end"], info["correct"]) == (0.0, False, True, "unavailable", False)
    assert info["error"].startswith("ZeroDivisionError")


def test_the_global_random_states_stay_as_they_were():
    random.seed(7)
    expected = random.random()
    random.seed(7)
    env = skyrl.SkyRLEnv(env="gsm8k", rows=ROWS)
    env.reset(seed=0)
    env.step(answer("1"))
    assert random.random() == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"env": "gsm9k", "rows": ROWS}, "has only the environments .*gsm8k"),
        ({"env": "gsm8k", "rows": []}, "at least one row"),
        ({"env": "gsm8k", "rows": "nowhere.jsonl"}, "cannot be read"),
        ({"env": "gsm8k", "rows": ROWS, "turns": 3}, "turns"),
    ],
)
def test_wrong_options_are_told(options, said):
    with pytest.raises(Rstar2Error, match=said):
        skyrl.SkyRLEnv(**options)
