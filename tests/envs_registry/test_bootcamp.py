"""Any object with InternBootcamp's protocol plays as an environment; the bundled one so that the bare id works."""

import gymnasium as gym
import numpy as np
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing import StubTool, check_text_env

ID = "rstar2/Bootcamp-v0"


class Echo:
    """A world of words to repeat, that chokes on some of them."""

    def case_generator(self, seed):
        return {"word": f"w{seed}"}

    def prompt_func(self, identity):
        return f"Say {identity['word']}."

    def extract_output(self, text):
        return text.rpartition("SAY ")[2] if "SAY " in text else None

    def verify(self, answer, identity):
        if answer == "crash":
            raise KeyError("crash")
        return answer == identity["word"]


class Scored(Echo):
    def verify_score(self, text, identity):
        return float("nan") if "nan" in text else 0.25 + 0.5 * self.verify(self.extract_output(text), identity)


def box(answer):
    return f"<answer>\\boxed{{{answer}}}</answer>"


def test_the_bare_id_works_and_keeps_the_contract():
    check_text_env(ID, seeds=(0, 1), actions=[box(1)])


def test_every_instance_is_solved_by_its_reference_and_not_by_something_else():
    env = gym.make(ID)
    for seed in range(1000):
        env.reset(seed=seed)
        problem = env.unwrapped.problem
        assert env.step(box(problem.answer))[1] == 1.0
        env.reset(seed=seed)
        wrong = next(x for x in range(10**6) if not env.unwrapped.bootcamp.verify(x, problem.meta["identity"]))
        assert env.step(box(wrong))[1] == 0.0


def test_any_right_answer_counts_and_the_stated_baseline_holds():
    env = gym.make(ID)
    rewards = []
    for seed in range(600):
        env.reset(seed=seed)
        m = env.unwrapped.problem.meta["identity"]["m"]
        rewards.append(env.step(box(np.random.default_rng(seed).integers(m)))[1])
    assert np.mean(rewards) == pytest.approx(env.unwrapped.random_baseline, abs=0.04)


def test_splits_and_seeds_do_not_collide():
    seen = {}
    for split in ("train", "validation", "test"):
        env = gym.make(ID, split=split, bootcamp_options={"largest": 1000})
        seen[split] = {str(env.unwrapped.problems[i].meta["identity"]) for i in range(200)}
        assert len(seen[split]) > 190
    assert not seen["train"] & seen["test"]
    assert not seen["validation"] & seen["test"]


def test_an_object_of_ones_own_is_read_and_graded_by_itself():
    env = gym.make(ID, bootcamp=Echo())
    text, info = env.reset(seed=1)
    word = env.unwrapped.problem.meta["identity"]["word"]
    assert text == f"Say {word}."
    assert info["system"] == ""
    _, reward, terminated, _, info = env.step(f"Well. SAY {word}")
    assert (reward, terminated, info["end"], info["answer"], info["correct"]) == (1.0, True, "answered", word, True)
    env.reset(seed=1)
    assert env.step("nothing")[4]["end"] == "no_answer"


def test_a_score_of_its_own_is_the_reward():
    env = gym.make(ID, bootcamp=Scored())
    env.reset(seed=1)
    _, reward, *_, info = env.step("SAY something else")
    assert (reward, info["correct"]) == (0.25, False)


@pytest.mark.parametrize(("turn", "error"), [("SAY crash", "KeyError"), ("SAY nan", "ValueError")])
def test_a_verifier_that_chokes_earns_nothing_and_is_named(turn, error):
    env = gym.make(ID, bootcamp=Scored())
    env.reset(seed=1)
    _, reward, terminated, _, info = env.step(turn)
    assert (reward, terminated, info["correct"], info["verifier_error"]) == (0.0, True, False, error)


def test_tools_may_be_used_on_the_way():
    env = gym.make(ID, tools=[StubTool("42")])
    env.reset(seed=1)
    text, _, terminated, *_ = env.step(env.unwrapped.dialect.format_call("stub", {}))
    assert "42" in text
    assert not terminated
    assert env.step(box(env.unwrapped.problem.answer))[1] == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"bootcamp": "nowhere:Camp"},
        {"bootcamp": "math:Camp"},
        {"bootcamp": "math"},
        {"bootcamp": object()},
        {"bootcamp": Echo(), "bootcamp_options": {"largest": 5}},
        {"bootcamp_options": {"smallest": 5}},
    ],
)
def test_what_is_no_bootcamp_is_refused(options):
    with pytest.raises(ConfigurationError):
        gym.make(ID, **options)


def test_an_instance_that_is_no_json_is_refused():
    class Opaque(Echo):
        def case_generator(self, seed):
            return {"word": object()}

    with pytest.raises(ConfigurationError, match="JSON"):
        gym.make(ID, bootcamp=Opaque()).reset(seed=1)
