"""``stages``: the declared kinds in the declared steps, and without what has become easy."""

from __future__ import annotations

import json

import pytest
from outcomes import by_source, steps, went

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.samplers.base import SAMPLERS
from rstar2_env.trainers.samplers.stages import Stages

KINDS = by_source(["math", "code"])
HALF = {"math": 0.5, "code": 0.5}


def test_the_declared_kinds_come_in_the_declared_steps():
    sampler = Stages(0, KINDS, order=("math", "code", "math"), steps=(2, 1))
    assert steps(sampler, HALF, 5, batch=2) == ["math"] * 4 + ["code"] * 2 + ["math"] * 4
    assert Stages(0, KINDS, steps=(3,)).kind == "math"


@pytest.mark.parametrize("stop", range(5))
def test_a_resumed_run_is_in_the_same_stage(stop):
    def make():
        return Stages(0, KINDS, order=("code", "math"), steps=(3,))

    whole = make()
    steps(whole, HALF, stop)
    resumed = make()
    resumed.load_state_dict(json.loads(json.dumps(whole.state_dict())))
    assert (resumed.stage, resumed.kind) == (whole.stage, whole.kind) == ((0, "code") if stop < 3 else (1, "math"))
    assert steps(resumed, HALF, 4) == steps(whole, HALF, 4)


def test_what_became_easy_is_left_out_when_its_kind_comes_again():
    sampler = Stages(0, KINDS, drop_above=0.75, steps=(100,))
    easy = {"math-0", "math-1"}
    drawn = []
    for _ in range(20):
        (start,) = sampler.draw(1)
        drawn.append(start.problem_id)
        sampler.observe([went(start, 8 if start.problem_id in easy else 6)])
    assert all(drawn.count(name) == 1 for name in easy)
    assert min(drawn.count(f"math-{n}") for n in (2, 3, 4)) >= 5


def test_where_everything_is_easy_it_goes_on():
    sampler = Stages(0, KINDS, drop_above=0.5, steps=(100,))
    assert len(steps(sampler, {"math": 1.0}, 5)) == 20


def test_the_notation_of_a_recipe_and_steps_that_do_not_fit():
    sampler = make_part(SAMPLERS, "stages:order=code+math,steps=7", problems=KINDS)
    assert sampler.kind == "code"
    for wrong in ((1, 2), (0,)):
        with pytest.raises(ConfigurationError, match="`steps` must have"):
            Stages(0, KINDS, steps=wrong)
    with pytest.raises(ConfigurationError, match="'logic', but the problems do not"):
        Stages(0, KINDS, order=("math", "logic"))
