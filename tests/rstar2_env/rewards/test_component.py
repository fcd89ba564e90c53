"""A component of a reward: weight, gate, bounds, and what its score needs."""

import asyncio
import math

import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards import Component, RewardContext, make_component, needs_of

EPISODE, CTX = Episode(turns=3, correct=True), RewardContext({"end": "answered"})


def both(component, episode=EPISODE):
    """The value, which is the same whether it is awaited or not."""
    value = component.value(episode, CTX)
    assert asyncio.run(component.avalue(episode, CTX)) == value
    return value


def turns(episode, ctx):
    return episode.turns


async def later(episode, ctx):
    await asyncio.sleep(0)
    return episode.turns


class Lost:
    needs = frozenset({"grup"})

    def __call__(self, episode, ctx):
        return 0.0


def test_a_value_is_clipped_and_then_weighted():
    assert both(Component("t", turns, 2.0, clip=(0, 2.5))) == 5.0


@pytest.mark.parametrize(
    ("gate", "right", "wrong"),
    [("correct", 3.0, 0.0), ("wrong", 0.0, 3.0), (lambda episode, ctx: ctx.info["end"] == "answered", 3.0, 3.0)],
)
def test_a_shut_gate_is_worth_nothing(gate, right, wrong):
    component = Component("t", turns, gate=gate)
    assert (both(component), both(component, Episode(turns=3))) == (right, wrong)


def test_nothing_to_score_stays_nothing_whatever_the_weight():
    assert both(Component("none", lambda episode, ctx: None, 5.0)) is None


def test_a_coroutine_is_awaited_in_a_trainer_alone():
    component = make_component([later, {"weight": 0.5}])
    assert asyncio.run(component.avalue(EPISODE, CTX)) == 1.5
    with pytest.raises(ConfigurationError, match="'later' is a coroutine"):
        component.value(EPISODE, CTX)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_no_number_names_its_component(bad):
    component = Component("bad", lambda episode, ctx: bad)
    with pytest.raises(ConfigurationError, match="'bad' gave"):
        asyncio.run(component.avalue(EPISODE, CTX))


def test_a_need_that_there_is_not_is_refused():
    assert needs_of(turns) == frozenset()
    with pytest.raises(ConfigurationError, match="needs 'grup'; a component may need 'group', 'judge', 'lm'"):
        Component("lost", Lost()).check()
