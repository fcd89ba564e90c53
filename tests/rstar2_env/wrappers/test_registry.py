"""Every wrapper has a name, and goes around an environment as a configuration writes it."""

from __future__ import annotations

import gymnasium as gym
import pytest
from wrapper_env import answer, call, make, right

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.rewards import make_component
from rstar2_env.wrappers import (
    WRAPPERS,
    FaultInjection,
    ObservationLimit,
    RecordEpisodes,
    SaveState,
    ToolBudget,
    UnaryFeedback,
    read_episodes,
    wrap,
)
from rstar2_env.wrappers.registry import recorded


def play(env, *script, seed=1):
    env.reset(seed=seed)
    for turn in script:
        step = env.step(turn(env) if callable(turn) else turn)
    return step


def faults_of(env, seeds=range(30)):
    """The kind of fault of each episode's one call, or ``None``."""
    return [play(env, call(), seed=seed)[4]["tool_calls"][0].get("fault", {}).get("kind") for seed in seeds]


def test_every_wrapper_of_the_package_has_a_name():
    assert WRAPPERS.names() == [
        "fault_injection",
        "instruction",
        "observation_limit",
        "record_episodes",
        "reward_shaping",
        "save_state",
        "tool_budget",
        "unary_feedback",
    ]


@pytest.mark.parametrize(
    "written",
    [
        "fault_injection:rate=1,kinds=timeout+lost,seed=3",
        {"name": "fault_injection", "rate": 1, "kinds": ["timeout", "lost"], "seed": 3},
        ["fault_injection", {"rate": 1, "kinds": ("timeout", "lost"), "seed": 3}],
        'fault_injection:rate={"timeout": 0.5, "lost": 0.5},seed=3',
    ],
)
def test_every_form_makes_the_same_wrapper(written):
    expected = faults_of(FaultInjection(make("42"), 1.0, kinds=("timeout", "lost"), seed=3))
    assert set(expected) == {"timeout", "lost"}
    assert faults_of(wrap(make("42"), [written])) == expected


def test_the_first_is_innermost():
    env = wrap(
        make("x" * 100), ["observation_limit:limit=10,cut=tail", UnaryFeedback, "tool_budget:calls=2", SaveState]
    )
    kinds = [type(env)]
    while isinstance(env, gym.Wrapper):
        env = env.env
        kinds.append(type(env))
    assert kinds[:4] == [SaveState, ToolBudget, UnaryFeedback, ObservationLimit]


def test_one_text_is_one_wrapper():
    assert type(wrap(make(), "tool_budget:calls=1")) is ToolBudget


def test_a_file_of_ones_own_is_a_wrapper(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    (tmp_path / "own_wrapper_1.py").write_text(
        "import gymnasium as gym\n"
        "class Louder(gym.Wrapper):\n"
        "    def __init__(self, env, sign: str = '!'):\n"
        "        super().__init__(env)\n"
        "        self.sign = sign\n"
        "    def reset(self, **options):\n"
        "        text, info = self.env.reset(**options)\n"
        "        return text + self.sign, info\n"
    )
    plain = make().reset(seed=1)[0]
    assert wrap(make(), [f"{tmp_path}/own_wrapper_1.py"]).reset(seed=1)[0] == plain + "!"
    assert wrap(make(), [f"{tmp_path}/own_wrapper_1.py:Louder:sign=?"]).reset(seed=1)[0] == plain + "?"


@pytest.mark.parametrize(
    ("wrappers", "error", "said"),
    [
        (["fault_injectoin"], UnknownNameError, "no wrapper named 'fault_injectoin'. Did you mean 'fault_injection'"),
        (["fault_injection:rat=1"], ConfigurationError, "wrapper 'fault_injection'.*'rat'.*Did you mean 'rate'"),
        (["fault_injection:0.1"], ConfigurationError, "options of the wrapper 'fault_injection' as name=value"),
        (["fault_injection:kinds=lots"], ConfigurationError, "no kind of fault named 'lots'. Did you mean 'lost'"),
        (["observation_limit"], ConfigurationError, "wrapper 'observation_limit'.*limit"),
        ([{"rate": 1}], ConfigurationError, "does not have a name"),
        ({"name": "tool_budget"}, ConfigurationError, "`wrappers` must be a list"),
    ],
)
def test_a_mistake_names_the_wrapper_and_the_option(wrappers, error, said):
    with pytest.raises(error, match=said):
        wrap(make(), wrappers)


def test_what_a_file_keeps_is_read_again():
    kept = recorded([{"name": "fault_injection", "rate": {"lost": 0.5}}, "save_state", ["tool_budget", {"calls": 3}]])
    assert kept == ['fault_injection:rate={"lost": 0.5}', "save_state", "tool_budget:calls=3"]
    assert recorded(kept) == kept


class TestRecordEpisodes:
    def test_environments_of_one_configuration_share_the_file(self, tmp_path):
        written = f"record_episodes:path={tmp_path / 'e.jsonl'}"
        one, other = wrap(make(), [written]), wrap(make(), [written])
        play(one, right, seed=1)
        play(other, right, seed=2)
        play(one, right, seed=3)
        lines = read_episodes(tmp_path / "e.jsonl")
        assert [(line["index"], line["seed"]) for line in lines] == [(0, 1), (1, 2), (2, 3)]

    def test_a_file_that_was_there_before_is_not_lost(self, tmp_path):
        path = tmp_path / "e.jsonl"
        play(RecordEpisodes(make(), path), right)
        with pytest.raises(ConfigurationError, match="already exists"):
            wrap(make(), [f"record_episodes:path={path}"])
        assert wrap(make(), [f"record_episodes:path={path},resume=true"]).count == 1


class TestRewardComponents:
    def test_components_come_by_name_in_one_text(self):
        written = (
            "reward_shaping:components=(tool_use:each=0.05,most=1,weight=2,gate=correct)+answer_format,task_weight=3"
        )
        *_, info = play(wrap(make("x"), [written]), call(), call(), right)
        assert info["reward_components"] == {"task": 3.0, "tool_use": pytest.approx(0.2), "answer_format": 1.0}
        *_, info = play(wrap(make("x"), [written]), call(), answer("wrong"))
        assert info["reward_components"] == {"task": 0.0, "tool_use": 0.0, "answer_format": 1.0}

    def test_components_come_from_a_table(self):
        table = {
            "name": "reward_shaping",
            "components": [{"name": "tool_use", "each": 0.05}, "answer_format:weight=0.5,label=form"],
        }
        *_, info = play(wrap(make("x"), [table]), call(), right)
        assert info["reward_components"] == {"task": 1.0, "tool_use": 0.05, "form": 0.5}

    def test_a_function_is_a_score(self):
        def turns(episode, ctx):
            return episode.turns

        *_, info = play(wrap(make("x"), [["reward_shaping", {"components": [turns]}]]), call(), right)
        assert list(info["reward_components"].values()) == [1.0, 2.0]

    @pytest.mark.parametrize(
        ("written", "error", "said"),
        [
            ("tool_usse", UnknownNameError, "no reward component named 'tool_usse'. Did you mean 'tool_use'"),
            ("tool_use:eech=1", ConfigurationError, "reward component 'tool_use'.*Did you mean 'each'"),
            ("tool_use:gate=never", ConfigurationError, "gate"),
            ("cosine_length", ConfigurationError, "longest"),
            ("cosine_length:longest=0", ConfigurationError, "longest must be an integer of at least 1, not 0"),
        ],
    )
    def test_a_mistake_names_the_component_and_the_option(self, written, error, said):
        with pytest.raises(error, match=said):
            wrap(make(), [["reward_shaping", {"components": [written]}]])

    def test_a_component_is_taken_as_it_is(self):
        made = make_component("tool_use:weight=2")
        assert make_component(made) is made
