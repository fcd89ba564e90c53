"""An episode branches from any of its turns, exactly."""

import itertools
import pickle

import pytest
from wrapper_env import answer, call, make, right

from rstar2_env.core.errors import EpisodeOverError
from rstar2_env.wrappers import FaultInjection, RestoreError, SaveState


def noisy(arguments, context):
    return f"drawn {context.seed % 1000} {context.number}"


def test_every_branch_goes_on_from_the_saved_turn():
    env = SaveState(FaultInjection(make(noisy), 0.5, kinds=["lost"]))
    env.reset(seed=4)
    before = env.step(call(a=1))
    here = env.save()
    after = env.step(call(a=2))
    env.step(answer("wrong"))
    for _ in range(2):
        text, info = env.restore(here)
        assert (text, info) == (before[0], before[4])
        assert env.step(call(a=2)) == after


def test_a_state_goes_through_pickle_to_another_instance():
    env = SaveState(make(noisy))
    env.reset(options={"problem_id": "p3"})
    env.step(call())
    state = pickle.loads(pickle.dumps(env.save()))
    expected = env.step(right(env))
    other = SaveState(make(noisy))
    other.restore(state)
    assert other.unwrapped.problem.id == "p3"
    assert other.step(right(other)) == expected


def test_an_episode_may_be_saved_before_its_first_turn_and_after_its_last():
    env = SaveState(make())
    first = env.reset()
    start = env.save()
    env.step("no")
    end = env.save()
    assert env.restore(start) == first
    env.restore(end)
    with pytest.raises(EpisodeOverError):
        env.step("more")


def test_saving_without_an_episode_says_to_reset():
    with pytest.raises(EpisodeOverError, match="reset"):
        SaveState(make()).save()


def test_a_replay_that_differs_is_an_error_not_another_episode():
    counter = itertools.count()
    env = SaveState(make(lambda arguments, context: str(next(counter))))
    env.reset(seed=1)
    env.step(call())
    state = env.save()
    with pytest.raises(RestoreError, match="gave other results"):
        env.restore(state)
