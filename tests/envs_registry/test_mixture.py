"""Several environments as one: declared proportions, a scale for each source, and no source that is silently a 0."""

from collections import Counter

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError, EpisodeOverError, UnknownNameError
from rstar2_env.problems.mixture import with_split
from rstar2_env.testing import StubSandbox, ToyEnv, check_text_env
from rstar2_env.wrappers import FaultInjection

ID = "rstar2/Mixture-v0"
MATH = {"id": "rstar2/MathTool-v0", "options": {"sandbox": StubSandbox("7")}}
GAME = {"id": "rstar2/TicTacToe-v0"}


def make(**more):
    return gym.make(ID, sources={"math": {**MATH, "weight": 3, "scale": 2.0}, "game": GAME, **more})


def answer(env):
    return env.unwrapped.dialect.format_answer(env.unwrapped.problem.answer)


def test_it_keeps_the_contract_with_sources_of_several_kinds():
    check_text_env(make, seeds=(0, 1, 2, 3))


def test_sources_come_in_their_declared_proportions():
    env = make()
    env.reset(seed=0)
    counts = Counter(env.reset()[1]["source"] for _ in range(800))
    assert counts["math"] / 800 == pytest.approx(0.75, abs=0.06)


def test_a_source_of_weight_nought_comes_only_when_asked_for():
    env = make(never={**GAME, "weight": 0})
    env.reset(seed=0)
    assert "never" not in {env.reset()[1]["source"] for _ in range(100)}
    assert env.reset(options={"source": "never"})[1]["source"] == "never"


def test_each_source_has_its_reward_scale():
    env = make()
    env.reset(seed=1, options={"source": "math"})
    _, reward, *_, info = env.step(answer(env))
    assert (reward, info["source_reward"], info["source"]) == (2.0, 1.0, "math")
    env.reset(seed=1, options={"source": "game"})
    while True:
        _, reward, terminated, _, info = env.step(env.unwrapped.oracle_turn())
        if terminated:
            break
    assert (reward, info["source_reward"]) == (1.0, 1.0)


def test_a_player_who_knows_the_answers_earns_everything_in_the_default_mixture():
    env = gym.make(ID)
    for seed in range(20):
        env.reset(seed=seed)
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(env.unwrapped.oracle_turn())
            over = terminated or truncated
        assert reward == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"source": "physics"},
        {"problem_id": "physics:1"},
        {"problem": {"question": "?", "answer": "1", "source": "physics"}},
        {"problem": {"question": "?", "answer": "1"}},
    ],
)
def test_an_unknown_source_is_an_error(options):
    env = make()
    with pytest.raises(UnknownNameError, match="math"):
        env.reset(seed=1, options=options)
    with pytest.raises((EpisodeOverError, gym.error.ResetNeeded)):
        env.step("no")


def test_a_problem_goes_to_its_source_and_comes_again_by_its_id():
    env = make()
    _, info = env.reset(seed=1, options={"problem": {"question": "6 + 1?", "answer": "7", "source": "math"}})
    assert info["source"] == "math"
    assert env.step(answer(env))[1] == 2.0
    text, info = env.reset(seed=5)
    assert env.reset(seed=6, options={"problem_id": info["problem_id"]})[0] == text


@pytest.mark.parametrize("options", [{"problem_id": "p1"}, {"source": "game", "problem_id": "math:p1"}])
def test_options_that_contradict_each_other_are_refused(options):
    with pytest.raises(ConfigurationError):
        make().reset(seed=1, options=options)


def test_middleware_reaches_the_tools_of_every_source():
    env = FaultInjection(make(), {"lost": 1.0})
    _, info = env.reset(seed=1, options={"source": "math"})
    (tool,) = info["tools"]
    call = env.unwrapped.dialect.format_call(tool["function"]["name"], {"code": "print(7)", "input": ""})
    *_, info = env.step(call)
    assert info["tool_calls"][0]["fault"]["kind"] == "lost"


def test_the_bare_id_has_a_default_mixture():
    env = gym.make(ID)
    env.reset(seed=0)
    assert {env.reset()[1]["source"] for _ in range(60)} == {"math", "congruence", "tictactoe", "negotiate"}


@pytest.mark.parametrize(
    "sources",
    [
        {},
        {"a": {**MATH, "weight": -1}},
        {"a": {**MATH, "weight": 0}},
        {"a": {**MATH, "scale": 0}},
        {"a": {**MATH, "colour": "red"}},
        {"a:b": MATH},
        {"a": {"id": "CartPole-v1"}},
    ],
)
def test_sources_that_make_no_sense_are_refused(sources):
    with pytest.raises((ConfigurationError, TypeError)):
        gym.make(ID, sources=sources)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"sources": ["rstar2/MathTool-v0"]},
            r"`sources` must map names to environments, such as \{'math'.*MathTool-v0'\]",
        ),
        ({"sources": "rstar2/MathTool-v0"}, "`sources` must map names"),
        ({"sources": {"a": "rstar2/MathTool-v0"}}, r"Source 'a' must be.*\{'id'.*not 'rstar2/MathTool-v0'"),
        ({"options": ["sandbox"]}, r"`options` must map.*not \['sandbox'\]"),
    ],
)
def test_something_else_than_sources_is_told_with_what_was_expected(options, words):
    with pytest.raises(ConfigurationError, match=words):
        gym.make(ID, **options)


def test_its_problems_are_those_of_its_sources_by_weight_and_come_again_by_their_ids():
    problems = make().unwrapped.problems
    drawn = [problems[index] for index in range(200)]
    assert Counter(problem.source for problem in drawn)["math"] / 200 == pytest.approx(0.75, abs=0.1)
    assert all(problem.id.startswith(f"{problem.source}:") for problem in drawn)
    assert [problems.get(problem.id) for problem in drawn[:20]] == drawn[:20]


def test_a_problem_of_its_own_is_played_by_its_source_under_the_same_id():
    env = make()
    for index in range(20):
        problem = env.unwrapped.problems[index]
        text, info = env.reset(seed=1, options={"problem": problem})
        assert (info["problem_id"], info["source"]) == (problem.id, problem.source)
        assert env.reset(seed=1, options={"problem_id": problem.id})[0] == text


def test_another_split_is_another_split_of_every_source():
    problems = make().unwrapped.problems
    test = with_split(problems, "test")
    assert (problems.split, test.split) == ("train", "test")
    # Not the games' questions: all matches that the policy begins look alike.
    questions = [
        {p.question for p in (source[i] for i in range(100)) if p.source == "math"} for source in (problems, test)
    ]
    assert not questions[0] & questions[1]
    assert all("/test/" in test[i].id for i in range(20))


def test_a_mixture_with_a_source_that_has_no_list_of_problems_has_none():
    gym.register("Test/Closed-v0", entry_point=Closed)
    try:
        assert make(closed={"id": "Test/Closed-v0"}).unwrapped.problems is None
    finally:
        gym.registry.pop("Test/Closed-v0")


class Closed(ToyEnv):
    """Keeps its problems to itself."""

    def __init__(self, **options):
        super().__init__(**options)
        self.problems = None
