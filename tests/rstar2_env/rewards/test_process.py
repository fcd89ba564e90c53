"""``process``: the golden numbers of Clip and Delta, and that repeating a good step earns nothing."""

from __future__ import annotations

import pytest
from said import said, score

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.rewards import OnTurns
from rstar2_env.rewards.process import Process

GOLDEN = [0.9, 0.8, 0.85, 0.7]


def test_the_golden_numbers():
    delta = Process(bound="delta").bounded(GOLDEN)
    assert delta == pytest.approx([0.1, -0.05, 0.15, 0.7])
    assert sum(delta) == pytest.approx(0.9)
    assert Process(bound="clip", eta=0.8).bounded(GOLDEN) == pytest.approx([0, 0, 0, -0.1])
    assert Process(bound="both", eta=0.8).bounded(GOLDEN) == pytest.approx([0, 0, 0.1, -0.1])


def test_a_good_step_said_ten_times_more_earns_nothing():
    repeated = [*GOLDEN, *[0.9] * 10]
    assert sum(repeated) == pytest.approx(12.25)
    for bound, expected in (("delta", 0.9), ("clip", -0.1), ("both", 0.0)):
        earned = score(Process(of=lambda episode: repeated, bound=bound), said(*["x"] * 14))
        assert earned == pytest.approx(expected)
        assert earned == pytest.approx(score(Process(of=lambda episode: GOLDEN, bound=bound), said(*["x"] * 4)))


def test_credit_of_turns_is_the_return_from_each_turn_on():
    def credit(bound):
        return score(Process(of=lambda episode: GOLDEN, bound=bound, credit="turns"), said(*["x"] * 4))

    assert isinstance(credit("delta"), OnTurns)
    assert credit("delta") == pytest.approx(GOLDEN)
    assert credit("both") == pytest.approx([0, 0, 0, -0.1])
    # Only with the clip alone does a turn also pay for later turns.
    assert credit("clip") == pytest.approx([-0.1] * 4)


def test_the_free_scores_are_those_of_statuses_and_of_the_environment():
    turns = [
        Turn(statuses=[ToolStatus.OK, ToolStatus.EXCEPTION], reward=0.25),
        Turn(statuses=[ToolStatus.UNAVAILABLE]),
        Turn(statuses=[ToolStatus.TIMEOUT], reward=0.5),
        Turn(reward=1.0),
    ]
    episode = said(*["x"] * 4, steps=turns)
    assert score(Process(bound="clip", eta=1.0), episode) == pytest.approx(-0.5 - 1.0)
    assert score(Process(bound="delta"), episode) == 0.5
    assert score(Process(of="turn_rewards", bound="clip", eta=1.0), episode) == pytest.approx(-0.75 - 1.0 - 0.5)


def test_a_number_of_scores_that_is_not_that_of_the_turns_is_refused():
    with pytest.raises(ConfigurationError, match="returned 4 scores for an episode with 2"):
        score(Process(of=lambda episode: GOLDEN), said("x", "y"))
