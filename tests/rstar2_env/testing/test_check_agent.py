"""check_agent passes a sound agent and names the clause that a broken one breaks."""

import random

import numpy as np
import pytest

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.testing import AGENT_CHECKS, ConformanceError, PlainEnv, ToyEnv, check_agent


class Sound:
    """Says a number that follows from its seed and the turn, then answers."""

    def __init__(self, answer="42"):
        self._answer = answer

    def reset(self, observation, info, *, seed):
        self._rng = np.random.default_rng(seed)
        self._turns = 0

    def act(self, observation, info):
        self._turns += 1
        if self._turns == 1 and info.get("tools"):
            return f'{self._rng.integers(1000)}\n<tool_call>{{"name": "none", "arguments": {{}}}}</tool_call>'
        return f"{self._rng.integers(1000)} <answer>\\boxed{{{self._answer}}}</answer>"


class TakesNoSeed(Sound):
    def reset(self, observation, info):
        super().reset(observation, info, seed=0)


class SaysNotWhatItIs(Sound):
    """?"""


class AsksForTheReferenceAlone(Sound):
    needs_reference = True


class SaysNothing(Sound):
    def act(self, observation, info):
        return None


class SaysSurrogates(Sound):
    def act(self, observation, info):
        return super().act(observation, info) + "\ud800"


class DrawsUnseeded(Sound):
    def reset(self, observation, info, *, seed):
        super().reset(observation, info, seed=None)


class CountsOn(Sound):
    episodes = 0

    def reset(self, observation, info, *, seed):
        self.episodes += 1
        super().reset(observation, info, seed=seed + self.episodes)


class KeepsTurnsOfAnEpisodeGivenUp(Sound):
    left = ()

    def reset(self, observation, info, *, seed):
        super().reset(observation, info, seed=seed)
        if not self.left:
            self.left = [super().act(observation, {"tools": [1]}), super().act(observation, {})]

    def act(self, observation, info):
        return self.left.pop(0) if self.left else super().act(observation, {})


class WantsTools(Sound):
    def reset(self, observation, info, *, seed):
        self.tools = info["tools"]
        super().reset(observation, info, seed=seed)


class DiesOfNul(Sound):
    def act(self, observation, info):
        if "\0" in observation:
            raise ValueError("embedded null byte")
        return super().act(observation, info)


class TakesTheTools(Sound):
    def reset(self, observation, info, *, seed):
        super().reset(observation, info, seed=seed)
        info.get("tools", []).clear()


class TicksOffCalls(Sound):
    def act(self, observation, info):
        for call in info.get("tool_calls", ()):
            call["seen"] = True
        return super().act(observation, info)


class DrawsFromTheGlobalGenerator(Sound):
    def act(self, observation, info):
        return f"{random.random()} {super().act(observation, info)}"


class SeedsTheGlobalGenerator(Sound):
    def reset(self, observation, info, *, seed):
        np.random.seed(seed)
        super().reset(observation, info, seed=seed)


class LosesItsStateOnTheWay(Sound):
    def __getstate__(self):
        return {**self.__dict__, "_rng": np.random.default_rng(99)}


class Both(DiesOfNul, TakesTheTools):
    """Dies of what it is shown, and takes what is not its own."""


def held_by_a_lambda():
    class Local(Sound):
        """An agent of a class that no other process can find."""

    return lambda: Local()


MUTANTS = [
    (TakesNoSeed, "protocol", r"must accept the call reset(observation, info, *, seed)"),
    (SaysNotWhatItIs, "protocol", "docstring"),
    (AsksForTheReferenceAlone, "protocol", "needs_reference has no effect without needs_problem"),
    (SaysNothing, "turns", "act returned NoneType at turn 1; return the turn as a str"),
    (SaysSurrogates, "turns", "lone surrogate"),
    (DrawsUnseeded, "determinism", "in reset(seed=)"),
    (CountsOn, "forgetting", "an episode differs if one agent plays it twice"),
    (KeepsTurnsOfAnEpisodeGivenUp, "forgetting", "it follows an abandoned episode"),
    (WantsTools, "other_environments", "use info.get"),
    (DiesOfNul, "hostile_observations", "given NUL as the observation, the agent raises ValueError"),
    (TakesTheTools, "untouched_info", "its reset changed info; copy"),
    (TicksOffCalls, "untouched_info", "its act changed info; copy"),
    (DrawsFromTheGlobalGenerator, "global_random_state", "numpy.random.default_rng(seed)"),
    (SeedsTheGlobalGenerator, "global_random_state", "numpy.random"),
    (LosesItsStateOnTheWay, "pickling", "in the middle of an episode"),
    (held_by_a_lambda(), "pickling", "can be pickled"),
]


@pytest.mark.parametrize("agent", [Sound, Sound()], ids=["class", "instance"])
def test_a_sound_agent_passes_every_check(agent):
    assert check_agent(agent) == list(AGENT_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named(mutant, check, words):
    with pytest.raises(ConformanceError) as caught:
        check_agent(mutant, skip=set(AGENT_CHECKS) - {check})
    assert f"- {check}: " in str(caught.value)
    assert words in str(caught.value)
    assert mutant.__qualname__ in str(caught.value)


def test_every_check_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(AGENT_CHECKS)


def test_every_broken_clause_is_reported_at_once():
    words = r"^The agent .*Both fails 2 of 9 checks:\n- hostile_observations: .*\n- untouched_info: .*\ndocs: .*$"
    with pytest.raises(ConformanceError, match=words):
        check_agent(Both)


def test_a_name_and_options_are_taken_as_the_command_line_takes_them():
    assert "turns" in check_agent("random_text", length=5)
    with pytest.raises(UnknownNameError, match="random_text"):
        check_agent("randomtext")
    with pytest.raises(ConfigurationError, match="length"):
        check_agent("random_text", length=0)


@pytest.mark.parametrize("env", [PlainEnv, ToyEnv, "rstar2/TicTacToe-v0"])
def test_another_environment_is_played(env):
    assert "turns" in check_agent(Sound, env=env, answer="7")


def test_arguments_that_do_not_fit_together_are_refused():
    with pytest.raises(ConfigurationError, match="at least two different seeds"):
        check_agent(Sound, seeds=[1, 1])
    with pytest.raises(ConfigurationError, match="given by name or class"):
        check_agent(Sound(), answer="7")
    with pytest.raises(ConfigurationError, match="takes the name of an agent"):
        check_agent(7)
    with pytest.raises(UnknownNameError, match="pickling"):
        check_agent(Sound, skip=["pickeling"])
