"""Recipes that differ in how they share out credit: what each prescribes, and the advantages of its first step."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from places import ROOT
from small_run import SmallPlayer

from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.parts import make_parts
from rstar2_env.trainers.step.collector import Collector
from rstar2_env.trainers.step.collector_parts import StepOptions, StepServices

MIXED, SAME = [1.0, 0.0, 0.0, 1.0], [0.0] * 4
LOSSES = {
    "capo": ["ppo_clip"],
    "gdpo": ["ppo_clip"],
    "gigpo": ["ppo_clip", "kl"],
    "gpg": ["reinforce"],
    "grpo_passk": ["ppo_clip"],
    "maxrl": ["ppo_clip"],
    "opo": ["reinforce"],
    "rae": ["reinforce"],
    "reinforce_pp": ["ppo_clip", "kl"],
}


def configured(name, **options):
    return TRAINERS.get(name).configure({"model": "m"}, options)


def collector(name, earned=(MIXED, SAME), **options):
    """A collector of a recipe in which group ``n`` earns what the ``n``-th list says, in turn."""
    told: dict[int, int] = {}

    def earns(problem, group, rng):
        told[group] = told.get(group, -1) + 1
        return earned[group % len(earned)][told[group] % 4]

    config = configured(name, **{"problems_per_step": 2, "group_size": 4, "max_episode_tokens": 1000, **options})
    parts, rollout = make_parts(config, shares_weights=True), config.rollout
    options = StepOptions(
        problems_per_step=rollout.problems_per_step,
        group_size=rollout.group_size,
        refill=rollout.refill,
    )
    return Collector(parts, options, StepServices(SmallPlayer(earns), parts.sampler_factory(None, 0)))


def advantages(name, **options):
    """The advantages of a recipe's first step, one number a row; of tokens that of the first one."""
    rows = collector(name, **options).collect(0).rows
    return [float(np.resize(row.advantage, len(row.mask))[row.mask.index(1)]) for row in rows]


@pytest.mark.parametrize("name", LOSSES)
def test_it_is_one_short_file_that_names_its_paper_and_its_loss(name):
    recipe = TRAINERS.get(name)
    text = (ROOT / f"trainers/recipes/{name}.py").read_text()
    assert len(text.splitlines()) < 30
    assert recipe.paper in inspect.cleandoc(text.split('"""')[1])
    assert [part.name for part in configured(name).parts.loss] == LOSSES[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("maxrl", [1, -1, -1, 1, 0, 0, 0, 0]),
        ("gpg", [1, -1, -1, 1, 0, 0, 0, 0]),
        ("grpo_passk", [0, 0, 0, 0, 0, 0, 0, 0]),
        ("gigpo", [1, -1, -1, 1, 0, 0, 0, 0]),
    ],
)
def test_the_advantages_of_a_mixed_group_and_of_one_without_a_difference(name, expected):
    assert advantages(name) == pytest.approx(expected)


def test_a_best_episode_that_is_alone_is_the_only_one_to_learn_from():
    assert advantages("grpo_passk", earned=([0.0, 1.0, 0.5, 0.0],)) == pytest.approx([0, 0.5, 0, 0] * 2)


def test_rae_keeps_its_means_in_the_checkpoint():
    one, other = collector("rae"), collector("rae")
    one.collect(0)
    other.load_state_dict(one.state_dict())
    assert one.state_dict()["parts"]["advantage"]["means"] == other.state_dict()["parts"]["advantage"]["means"] != {}


def test_the_kl_term_of_reinforce_pp_has_the_gradient_of_the_divergence():
    surrogate, kl = make_parts(configured("reinforce_pp"), shares_weights=True).terms
    assert (surrogate.low, surrogate.high, kl.coef, kl.estimator) == (0.2, 0.2, 1e-3, "k2")


def test_gdpo_compares_the_format_in_a_group_where_all_are_right():
    batch = collector("gdpo", earned=([1.0] * 4,)).collect(0)
    assert len(batch.rows) == 8


def test_an_episode_that_failed_is_in_no_baseline():
    """A filler with a reward of 0 would pull the mean of its group down, and the advantage of the others up."""
    with_failed = ([1.0, "unavailable", 0.0, 1.0], MIXED)
    assert advantages("maxrl", earned=with_failed)[:3] == pytest.approx([0.5, -1, 0.5])
    for name in LOSSES:
        batch = collector(name, earned=with_failed).collect(0)
        assert all(row.episode.available for row in batch.rows)
