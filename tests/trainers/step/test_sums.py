"""Rates over everything that was observed, on all processes and in all steps: never means of means."""

import json

from rstar2_env.trainers.losses.mismatch import summary
from rstar2_env.trainers.step.sums import Sums


class Two:
    """This process and another one."""

    rank, size = 0, 2

    def __init__(self, other):
        self._other = other

    def sum(self, values):
        raise AssertionError("not used")

    def gather(self, value):
        return [value, self._other]


def test_a_rate_is_that_of_all_observations_and_not_the_mean_of_the_steps():
    sums = Sums()
    sums.add("status/timeout", 1, 1)
    sums.add("status/timeout", 0, 99)
    assert summary(sums.take()) == {"status/timeout": 0.01}


def test_what_only_another_process_saw_is_counted():
    sums = Sums()
    sums.merge({"pass": (1.0, 2.0)})
    found = sums.take(Two({"pass": (0.0, 6.0), "end/tokens": (3.0, 6.0)}))
    assert summary(found) == {"pass": 0.125, "end/tokens": 0.5}


def test_a_share_that_nobody_could_observe_is_absent():
    sums = Sums()
    sums.add("tool_error_share", 0, 0)
    assert summary(sums.take()) == {}


def test_taking_begins_anew():
    sums = Sums()
    sums.add("loss", 2.0)
    assert sums.take() == {"loss": (2.0, 1.0)}
    assert sums.take() == {}


def test_sums_go_on_from_a_checkpoint():
    sums, other = Sums(), Sums()
    sums.add("loss", 2.0)
    other.load_state_dict(json.loads(json.dumps(sums.state_dict())))
    other.add("loss", 4.0)
    assert other.take() == {"loss": (6.0, 2.0)}
