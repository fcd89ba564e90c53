"""``length_stages``: the budgets of each stage, where a resumed run goes on, and what begins afresh."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.testing.training.plain_run import PlainRun
from rstar2_env.trainers import HOOKS
from rstar2_env.trainers.hooks.length_stages import LengthStages
from rstar2_env.trainers.hooks.state import Budgets


def budgets(hook, steps=12, *, begin=0, reference=True):
    """Tokens and turns of each step, and what was reset when."""
    run = PlainRun(steps, reference=reference)
    run._limits = Budgets(1000, env_options={"problems": "arithmetic"})
    hook.bind(run)
    found = []
    for run.step in range(begin, steps):
        hook.on_step_begin(None, None, None)
        found.append((run.limits.max_episode_tokens, run.limits.env_options.get("max_turns")))
        assert run.limits.env_options["problems"] == "arithmetic"
    return found, [(step, what) for step, what, _ in run.done if what.startswith("reset")]


def test_the_stages_have_the_declared_budgets():
    hook = LengthStages(tokens=(1, 1.5, 2.5), steps=(3, 4))
    assert [tokens for tokens, _ in budgets(hook)[0]] == [1000] * 3 + [1500] * 4 + [2500] * 5
    hook = LengthStages(tokens=(), turns=(4, 8), steps=(5,))
    assert budgets(hook)[0] == [(1000, 4)] * 5 + [(1000, 8)] * 7


def test_one_length_holds_for_all_and_none_divides_the_run():
    assert [tokens for tokens, _ in budgets(LengthStages(steps=(2,)))[0]][::2] == [1000, 2000, 3000, 4000, 4000, 4000]
    assert [tokens for tokens, _ in budgets(LengthStages())[0]][::3] == [1000, 2000, 3000, 4000]


@pytest.mark.parametrize("begin", range(12))
def test_a_resumed_run_is_in_the_same_stage(begin):
    def make():
        return LengthStages(tokens=(1, 2, 3), steps=(4, 3), turns=(1, 2, 3))

    assert budgets(make(), begin=begin)[0] == budgets(make())[0][begin:]


def test_a_stage_may_begin_with_a_fresh_optimizer_and_reference():
    hook = LengthStages(tokens=(1, 2, 3), steps=(4, 3), reset=(1, 3))
    assert budgets(hook)[1] == [(7, "reset_optimizer"), (7, "reset_reference")]
    assert budgets(hook, reference=False)[1] == [(7, "reset_optimizer")]
    assert budgets(hook, begin=8)[1] == []


def test_the_paper_of_rstar2_in_the_notation_of_recipes():
    hook = make_part(HOOKS, "length_stages:tokens=1+1.5+1.5,steps=300+85,turns=10+10+15,reset=3")
    found, resets = budgets(hook, 510)
    assert [found[step] for step in (0, 299, 300, 384, 385, 509)] == [(1000, 10)] * 2 + [(1500, 10)] * 2 + [
        (1500, 15)
    ] * 2
    assert {step for step, _ in resets} == {385}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": ()}, "one for each stage"),
        ({"tokens": (1, 2), "turns": (3,)}, "one for each stage"),
        ({"tokens": (1, 0)}, "positive"),
        ({"steps": (1, 2)}, "one for each of the 3 stages"),
        ({"reset": (5,)}, "from 1 to 4"),
    ],
)
def test_stages_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        LengthStages(**options)


def cut(hook, *shares, begin=0):
    """The budget of each step, when this share of its episodes is cut off, and what was reset when."""
    run = PlainRun(len(shares) + begin)
    run._limits = Budgets(48)
    hook.bind(run)
    found = []
    for run.step, share in enumerate(shares, start=begin):
        hook.on_step_begin(None, None, None)
        found.append((run.limits.max_episode_tokens, run.limits.env_options.get("max_turns")))
        hook.on_log(None, None, None, logs={"rollout/end/tokens": share / 2, "rollout/end/turns": share / 2})
        hook.on_log(None, None, None, logs={"seconds/rollout": 1.0})
    return found, [step for step, what, _ in run.done if what == "reset_optimizer"]


def agent_math():
    return make_part(HOOKS, "length_stages:tokens=1+1.5+2,turns=48+72+96,when_cut=0.1,reset=2+3")


def test_the_stages_of_agent_math_grow_when_more_than_a_tenth_is_cut_off_and_never_shrink():
    found, resets = cut(agent_math(), 0.05, 0.1, 0.11, 0.0, 0.0, 0.5, 0.9, 0.0)
    assert found == [(48, 48)] * 3 + [(72, 72)] * 3 + [(96, 96)] * 2
    assert resets == [3, 6]


@pytest.mark.parametrize("stop", range(1, 8))
def test_a_resumed_run_is_in_the_stage_that_it_had_grown_to(stop):
    shares = (0.05, 0.1, 0.11, 0.0, 0.0, 0.5, 0.9, 0.0)
    begun, resumed = agent_math(), agent_math()
    before, resets = cut(begun, *shares[:stop])
    resumed.load_state_dict(json.loads(json.dumps(begun.state_dict())))
    after, later = cut(resumed, *shares[stop:], begin=stop)
    assert (before + after, resets + later) == cut(agent_math(), *shares)


def test_stages_end_by_steps_or_by_what_is_cut_off():
    with pytest.raises(ConfigurationError, match="Only one of the options `steps` and `when_cut`"):
        LengthStages(steps=(3,), when_cut=0.1)


def test_budgets_of_later_stages_are_checked_before_the_first_step():
    class Short(PlainRun):
        """An engine with room for episodes of 1,500 tokens."""

        def check_limits(self, limits):
            if limits.max_episode_tokens > 1500:
                raise ConfigurationError("An episode does not fit.")

    run = Short(12)
    run.limits = replace(run.limits, max_episode_tokens=1000)
    LengthStages(tokens=(1, 1.5)).bind(run)
    with pytest.raises(ConfigurationError, match="does not fit"):
        LengthStages(tokens=(1, 1.5, 2)).bind(run)
