"""``rae``: a running mean for each role, in checkpoints and alike on every process."""

import json
from itertools import permutations

import numpy as np
import pytest
from credit import advantages, plain

from rstar2_env.core.options.parts import make_part
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.base import ADVANTAGES


def of_role(task, *rewards):
    group = plain(*rewards)
    for one in group:
        one.task = task
    return group


def made(options=""):
    return make_part(ADVANTAGES, f"rae{options}")


def test_a_step_moves_the_mean_as_one_episode_after_the_other_would_on_average():
    rewards, decay, start = [1.0, 0.0, 0.5], 0.9, 0.2
    ends = []
    for order in permutations(rewards):
        mean = start
        for reward in order:
            mean = decay * mean + (1 - decay) * reward
        ends.append(mean)
    part = made(":decay=0.9")
    part.load_state_dict({"means": {"x": start}})
    (values,) = advantages(part, of_role("x", *rewards))
    assert part.state_dict() == {"means": {"x": pytest.approx(np.mean(ends))}}
    assert values == pytest.approx([reward - np.mean(ends) for reward in rewards])


def test_in_the_released_order_a_step_is_measured_with_the_means_before_it():
    part = made(":update=last")
    assert advantages(part, of_role("x", 1.0, 0.0)) == [[1.0, 0.0]]
    baseline = (1 - 0.95**2) * 0.5
    assert advantages(part, of_role("x", 1.0, 0.0)) == [pytest.approx([1 - baseline, -baseline])]


def test_roles_have_means_of_their_own():
    part = made(":decay=0")
    values = advantages(part, of_role("first", 1.0, 0.9), of_role("second", -1.0, -0.9))
    assert values[0] == pytest.approx([0.05, -0.05])
    assert values[1] == pytest.approx([-0.05, 0.05])
    shared = advantages(made(":decay=0"), of_role("one", 1.0, 0.9), of_role("one", -1.0, -0.9))
    assert min(shared[0]) > 0.8


def test_the_mean_follows_the_rewards_of_a_role():
    part = made()
    for _ in range(20):
        advantages(part, of_role("x", *[0.7] * 8))
    (values,) = advantages(part, of_role("x", 0.7, 0.8))
    assert values == pytest.approx([0, 0.1], abs=0.02)


def test_an_episode_alone_trains_and_a_step_without_one_changes_nothing():
    part = made()
    assert part.least == 1
    assert advantages(part) == []
    assert advantages(part, plain()) == [[]]
    assert part.state_dict() == {"means": {}}


def test_a_resumed_run_has_the_same_baselines():
    part = made()
    advantages(part, of_role("x", 1.0, 0.0), of_role("y", 0.5))
    fresh = made()
    fresh.load_state_dict(json.loads(json.dumps(part.state_dict())))
    group = of_role("x", 0.25), of_role("y", 0.75)
    assert advantages(fresh, *group) == advantages(part, *group)


def test_two_processes_keep_the_same_means():
    groups = [of_role("x", 1.0, 0.0), of_role("y", 0.5), of_role("x", 1.0)]
    alone = made()
    expected = advantages(alone, *groups)

    def one(ranks):
        part = made()
        return advantages(part, *(groups[:1], groups[1:])[ranks.rank], ranks=ranks), part.state_dict()

    (first, state), (second, other) = in_processes(2, one)
    assert state == other == alone.state_dict()
    assert [*first, *second] == [pytest.approx(own) for own in expected]
