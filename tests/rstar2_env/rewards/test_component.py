"""A component of a reward: weight, gate, bounds, and what its score needs."""

import asyncio
import math

import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards import Component, RewardContext, make_component, needs_of
from rstar2_env.rewards.judges import RewardModelJudge

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


def test_a_coroutine_is_awaited_with_a_loop_and_without_one():
    component = make_component([later, {"weight": 0.5, "clip": (0, 2)}])
    assert both(component) == 1.0

    async def in_a_notebook():
        return component.value(EPISODE, CTX)

    assert asyncio.run(in_a_notebook()) == 1.0


class Asks:
    needs = frozenset({"judge", "problem"})

    async def __call__(self, episode, ctx):
        return float(await ctx.judge("How many?"))


async def seven(prompt):
    return "7"


def test_a_judge_of_its_own_goes_before_that_of_the_context_and_is_no_need():
    async def other(prompt):
        return "1"

    own = make_component([Asks, {"judge": seven}])
    assert (own.needs, make_component(Asks).needs) == ({"problem"}, {"problem", "judge"})
    assert own.value(EPISODE, RewardContext(judge=other)) == 7.0
    assert make_component(Asks).value(EPISODE, RewardContext(judge=other)) == 1.0


@pytest.mark.parametrize(
    "judge",
    [
        "(model:url=http://127.0.0.1:1/v1,model=small,retries=0)",
        "model:url=http://127.0.0.1:1/v1,model=small,retries=0",
        {"name": "model", "url": "http://127.0.0.1:1/v1", "model": "small", "retries": 0},
    ],
)
def test_a_judge_is_an_endpoint_named_by_options(judge):
    asked = make_component({"name": "rubric", "judge": judge}).judge
    assert asked == RewardModelJudge("http://127.0.0.1:1/v1", "small", retries=0)
    with pytest.raises(ConfigurationError, match="url must be an address"):
        make_component("rubric:judge=(model:url=nowhere,model=small)")


def test_the_routes_of_a_router_have_judges_of_their_own():
    router = make_component({"name": "router", "routes": {"math": "return", "text": [Asks, {"judge": seven}]}})
    assert router.needs == {"problem"}
    assert both(router, Episode(task="text")) == 7.0
    assert both(router, Episode(task="math", reward=0.5)) == 0.5


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_no_number_names_its_component(bad):
    component = Component("bad", lambda episode, ctx: bad)
    with pytest.raises(ConfigurationError, match="'bad' returned"):
        asyncio.run(component.avalue(EPISODE, CTX))


def test_a_need_that_there_is_not_is_refused():
    assert needs_of(turns) == frozenset()
    with pytest.raises(ConfigurationError, match="in `needs`; expected only 'group', 'judge', 'lm'"):
        Component("lost", Lost()).check()
