"""check_wrapper passes a sound wrapper and names the clause that a broken one breaks."""

import time

import gymnasium as gym
import pytest

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.testing import WRAPPER_CHECKS, ConformanceError, ToyEnv, check_wrapper
from rstar2_env.wrappers import ToolBudget

GAME = "rstar2/TicTacToe-v0"


class Sound(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Counts the steps in ``info``."""

    def __init__(self, env, name="steps_taken"):
        gym.utils.RecordConstructorArgs.__init__(self, name=name)
        super().__init__(env)
        self.name, self.steps = name, 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        text, info = self.env.reset(seed=seed, options=options)
        return text, {**info, self.name: 0}

    def step(self, action):
        text, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        return text, float(reward), terminated, truncated, {**info, self.name: self.steps}


class IsNoWrapper(gym.Env):
    def __init__(self, env):
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed, options=options)

    def step(self, action):
        return self.env.step(action)


class HasAnotherSpace(Sound):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Discrete(2)


class ReturnsTheTextAlone(Sound):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed, options=options)[0]


class ReturnsFourThings(Sound):
    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated or truncated, info


class SwallowsTheSeed(Sound):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None if seed is None else 0, options=options)


class SwallowsTheOptions(Sound):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)


class SeedsByItself(Sound):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=7 if seed is None else seed, options=options)


class ForgetsTheTools(Sound):
    def reset(self, *, seed=None, options=None):
        text, info = super().reset(seed=seed, options=options)
        return text, {"system": info["system"], "problem_id": info["problem_id"]}


class ForgetsTheTags(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        info.pop("answer_tags")
        return *rest, info


class LosesCalls(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "tool_calls": info["tool_calls"][:1]}


class AddsCalls(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "tool_calls": info["tool_calls"] * 2}


class ChangesAStatusInSilence(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "tool_calls": [{**call, "status": "timeout"} for call in info["tool_calls"]]}


class HasAClock(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "at": time.perf_counter()}


class EndsTwice(Sound):
    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated or truncated, terminated or truncated, info


class ReachesForTheNextOne(Sound):
    def __init__(self, env):
        super().__init__(env)
        self.chain = env.tools


class PlaysOtherwiseInsideAnother(Sound):
    def reset(self, *, seed=None, options=None):
        text, info = super().reset(seed=seed, options=options)
        return f"{text} {self.env}", info


class CannotBeMadeAgain(gym.Wrapper):
    pass


class RecordsNoOption(Sound):
    def __init__(self, env, name="mine"):
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env, name=name)


class LeavesItOpen(Sound):
    def close(self):
        pass


class ClosesOnce(Sound):
    def close(self):
        del self.steps
        super().close()


class Both(LosesCalls, LeavesItOpen):
    pass


MUTANTS = [
    (IsNoWrapper, ToyEnv, "wrapping", "derive it from gymnasium.Wrapper"),
    (HasAnotherSpace, ToyEnv, "wrapping", "observation_space is Discrete(2), which is not a text space"),
    (ReturnsTheTextAlone, ToyEnv, "shapes", "reset around ToyEnv must return (str, dict), not str"),
    (ReturnsFourThings, ToyEnv, "shapes", "step around ToyEnv must return (str, float, bool, bool, dict), not"),
    (SwallowsTheSeed, ToyEnv, "seeds", "forward seed= in reset"),
    (SwallowsTheOptions, ToyEnv, "seeds", "forward options= in reset"),
    (SeedsByItself, ToyEnv, "seeds", "every reset() without a seed plays the same"),
    (
        ForgetsTheTools,
        ToyEnv,
        "information",
        "reset around ToyEnv leaves 'tools', 'stop' out of info; change",
    ),
    (ForgetsTheTags, ToyEnv, "information", "step around ToyEnv leaves 'answer_tags' out of info"),
    (LosesCalls, ToyEnv, "calls", "a call is missing from info['tool_calls']"),
    (AddsCalls, ToyEnv, "calls", "a call that was not made"),
    (ChangesAStatusInSilence, ToyEnv, "calls", "set injected to True"),
    (HasAClock, ToyEnv, "contract", "around ToyEnv the environment's contract is broken:\n  - determinism: "),
    (EndsTwice, ToyEnv, "contract", "- returns: "),
    (ReachesForTheNextOne, ToyEnv, "composition", "another wrapper inside, it raises AttributeError"),
    (PlaysOtherwiseInsideAnother, ToyEnv, "composition", "another wrapper inside, an episode differs"),
    (CannotBeMadeAgain, GAME, "remaking", "RecordConstructorArgs too, and call its __init__ with the options"),
    (RecordsNoOption, GAME, "remaking", "starts differently; record every option"),
    (LeavesItOpen, ToyEnv, "closing", "leaves the wrapped environment open"),
    (ClosesOnce, ToyEnv, "closing", "raises AttributeError"),
]


def test_a_sound_wrapper_passes_every_check():
    assert check_wrapper(Sound) == list(WRAPPER_CHECKS)


@pytest.mark.parametrize(
    ("mutant", "env", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_broken_clause_is_named(mutant, env, check, words):
    options = {"name": "theirs"} if mutant is RecordsNoOption else {}
    with pytest.raises(ConformanceError) as caught:
        check_wrapper(mutant, envs=[env], skip=set(WRAPPER_CHECKS) - {check}, **options)
    assert str(caught.value).startswith(f"The wrapper {mutant.__name__} fails 1 of 1 checks:\n- {check}: ")
    assert words in str(caught.value)


def test_every_check_has_a_mutant():
    assert {check for _, _, check, _ in MUTANTS} == set(WRAPPER_CHECKS)


def test_every_broken_clause_is_reported_at_once():
    with pytest.raises(ConformanceError, match=r"fails 2 of 9 checks:\n- calls: .*\n- closing: "):
        check_wrapper(Both, envs=[ToyEnv])


def test_a_function_may_put_several_around_an_environment():
    assert "contract" in check_wrapper(lambda env: Sound(ToolBudget(env, 2)), envs=[ToyEnv])


def test_options_go_to_the_wrapper():
    assert "contract" in check_wrapper(ToolBudget, envs=[ToyEnv], calls=1, per_turn=1)
    with pytest.raises(ConfigurationError, match="calls"):
        check_wrapper(ToolBudget, envs=[ToyEnv], skip=set(WRAPPER_CHECKS) - {"shapes"})


def test_arguments_that_do_not_fit_together_are_refused():
    with pytest.raises(ConfigurationError, match="takes a class or a function"):
        check_wrapper(Sound(ToyEnv()))
    with pytest.raises(ConfigurationError, match="at least one environment"):
        check_wrapper(Sound, envs=())
    with pytest.raises(UnknownNameError, match="closing"):
        check_wrapper(Sound, skip=["closin"])
