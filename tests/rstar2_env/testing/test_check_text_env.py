"""check_text_env passes a sound environment and names the clause that a broken one breaks."""

import itertools
import random
import time

import gymnasium as gym
import numpy as np
import pytest

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.testing import CHECKS, ConformanceError, StubTool, ToyEnv, check_text_env


class Sound(ToyEnv):
    """Keeps the contract; the mutants break one clause each."""


class BothFlags(Sound):
    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated or truncated, terminated or truncated, info


class ClockInInfo(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "at": time.perf_counter()}


class StatusOfItsOwn(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        for call in info["tool_calls"]:
            call["status"] = "failed"
        return *rest, info


class EndOfItsOwn(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "end": "won"} if "end" in info else info


class InfoThatIsNoJson(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "array": np.zeros(2)}


class NoSystemMessage(Sound):
    def reset(self, *, seed=None, options=None):
        text, info = super().reset(seed=seed, options=options)
        del info["system"]
        return text, info


class TextOutsideTheSpace(Sound):
    def step(self, action):
        _, *rest = super().step(action)
        return None, *rest


class RewardThatIsNoNumber(Sound):
    def step(self, action):
        text, _, *rest = super().step(action)
        return text, float("nan"), *rest


class GoesOnAfterTheEnd(Sound):
    def step(self, action):
        self._over = False
        return super().step(action)


class BareErrorAfterTheEnd(Sound):
    def step(self, action):
        if self._over:
            raise KeyError("over")
        return super().step(action)


class NoBudget(Sound):
    def __init__(self, **options):
        super().__init__(max_turns=10**9, **options)


class DiesOfNul(Sound):
    def step(self, action):
        if "\0" in action:
            raise ValueError("embedded null byte")
        return super().step(action)


class ReadsInASquare(Sound):
    def step(self, action):
        for _ in range(len(action) // 60):
            action.count("\n")
        return super().step(action)


class CountsInItsClass(Sound):
    episodes = itertools.count()
    number = 0

    def reset(self, *, seed=None, options=None):
        type(self).number += 1
        text, info = super().reset(seed=seed, options=options)
        return text, {**info, "problem_id": f"{info['problem_id']}/{self.number}"}


SCHEMAS = [StubTool().spec.schema()]


class GivesItsOwnSchemasAway(Sound):
    def reset(self, *, seed=None, options=None):
        text, info = super().reset(seed=seed, options=options)
        return text, {**info, "tools": SCHEMAS}


class HoldsALambda(Sound):
    def __init__(self, **options):
        super().__init__(**options)
        self.hook = lambda: None


class ForgetsWhenCopied(Sound):
    def __getstate__(self):
        return {**self.__dict__, "_turns": []}


class DrawsFromTheGlobalGenerator(Sound):
    def reset(self, *, seed=None, options=None):
        text, info = super().reset(seed=seed, options=options)
        return f"{text} ({random.random()})", info


class SeedsTheGlobalGenerator(Sound):
    def reset(self, *, seed=None, options=None):
        np.random.seed(0 if seed is None else seed)
        return super().reset(seed=seed, options=options)


MUTANTS = [
    (BothFlags, "returns", "both true"),
    (StatusOfItsOwn, "returns", "'failed', is not one of the statuses"),
    (EndOfItsOwn, "returns", "end='won'"),
    (InfoThatIsNoJson, "returns", "JSON"),
    (NoSystemMessage, "returns", "'system'"),
    (TextOutsideTheSpace, "returns", "not in the observation space"),
    (RewardThatIsNoNumber, "returns", "finite"),
    (ClockInInfo, "determinism", "differ"),
    (ClockInInfo, "gymnasium_check", "info"),
    (CountsInItsClass, "determinism", "differ"),
    (GoesOnAfterTheEnd, "end_of_episode", "must raise"),
    (BareErrorAfterTheEnd, "end_of_episode", "KeyError"),
    (NoBudget, "budget", "after 1000 turns"),
    (DiesOfNul, "hostile_turns", "NUL"),
    (ReadsInASquare, "linear_time", "24 times"),
    (CountsInItsClass, "independence", "differs"),
    (GivesItsOwnSchemasAway, "independence", "changing an info that was returned"),
    (HoldsALambda, "pickling", "pickle"),
    (ForgetsWhenCopied, "pickling", "middle of an episode"),
    (DrawsFromTheGlobalGenerator, "global_random_state", "random"),
    (SeedsTheGlobalGenerator, "global_random_state", "numpy.random"),
]


def test_a_sound_environment_passes_every_check():
    gym.register("rstar2-test/Sound-v0", entry_point=Sound)
    try:
        assert check_text_env("rstar2-test/Sound-v0") == list(CHECKS)
    finally:
        del gym.registry["rstar2-test/Sound-v0"]


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named(mutant, check, words):
    with pytest.raises(ConformanceError) as caught:
        check_text_env(mutant, skip=set(CHECKS) - {check})
    assert f"- {check}: " in str(caught.value)
    assert words in str(caught.value)
    assert mutant.__name__ in str(caught.value)


def test_every_broken_clause_is_reported_at_once():
    with pytest.raises(ConformanceError) as caught:
        check_text_env(ClockInInfo, skip=["linear_time", "hostile_turns"])
    assert "- gymnasium_check" in str(caught.value)
    assert "- determinism" in str(caught.value)


def test_every_check_has_a_mutant_that_only_it_must_catch():
    assert {check for _, check, _ in MUTANTS} == set(CHECKS)


def test_an_instance_without_a_spec_is_copied():
    assert "pickling" in check_text_env(Sound(), skip=["hostile_turns", "linear_time"])


def test_an_instance_with_a_spec_is_made_anew():
    gym.register("rstar2-test/Sound-v1", entry_point=Sound)
    try:
        env = gym.make("rstar2-test/Sound-v1")
        assert check_text_env(env, skip=["hostile_turns", "linear_time"])
    finally:
        del gym.registry["rstar2-test/Sound-v1"]


def test_the_authors_actions_are_played():
    seen = []

    class Notes(Sound):
        def step(self, action):
            seen.append(action)
            return super().step(action)

    check_text_env(Notes, actions=["my own turn"], skip=set(CHECKS) - {"returns"})
    assert "my own turn" in seen


def test_an_unknown_check_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="pickling"):
        check_text_env(Sound, skip=["pickeling"])


def test_options_go_with_an_id_only():
    with pytest.raises(ConfigurationError, match="max_turns"):
        check_text_env(Sound, max_turns=3)


def test_something_else_than_an_environment_is_refused():
    with pytest.raises(ConfigurationError, match="takes an id"):
        check_text_env(7)


def test_no_seeds_are_refused():
    with pytest.raises(ConfigurationError, match="seed"):
        check_text_env(Sound, seeds=())


def test_a_failing_check_closes_what_it_made():
    closed = []

    class Closes(BothFlags):
        def close(self):
            closed.append(self)
            super().close()

    with pytest.raises(ConformanceError):
        check_text_env(Closes, skip=set(CHECKS) - {"returns"})
    assert closed
