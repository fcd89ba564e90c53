"""Every recipe: what it prescribes, and what it makes of the same rewards, without a model."""

from __future__ import annotations

import inspect
import re
from datetime import date

import numpy as np
import pytest
from loss_tokens import tokens
from places import ROOT
from small_run import SmallPlayer

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.losses.reinforce import ReinforceLoss
from rstar2_env.trainers.options.parts import make_parts
from rstar2_env.trainers.step.collector import Collector
from rstar2_env.trainers.step.collector_parts import StepOptions, StepServices

OURS = ["dapo", "dr_grpo", "grpo", "grpo_clip_higher", "grpo_roc", "gspo", "lite_ppo", "reinforce", "rloo"]

PRESCRIBED = {
    "dapo": {
        "reward": ["return", "overlong"],
        "clip": (0.2, 0.28, "token"),
        "mean": "token_mean",
        "refill": 9,
        "minibatches": 16,
    },
    "dr_grpo": {"advantage": "group_mean", "clip": (0.2, 0.2, "token"), "mean": "const_len"},
    "grpo": {"clip": (0.2, 0.2, "token"), "mean": "seq_mean", "terms": ["ppo_clip", "kl"]},
    "grpo_clip_higher": {"clip": (0.2, 0.28, "token"), "mean": "token_mean"},
    "grpo_roc": {"selector": "roc", "clip": (0.2, 0.28, "token"), "mean": "token_mean", "oversample": 2},
    "gspo": {"clip": (3e-4, 4e-4, "sequence"), "mean": "seq_mean", "minibatches": 4},
    "lite_ppo": {"advantage": "group_mean_batch_std", "clip": (0.2, 0.2, "token"), "mean": "token_mean"},
    "reinforce": {"advantage": "reinforce", "clip": None, "mean": "const_len"},
    "rloo": {"advantage": "rloo", "clip": None, "mean": "const_len"},
}

MIXED, SAME = [1.0, 0.0, 0.0, 1.0], [0.0] * 4
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])


def configured(name, **options):
    return TRAINERS.get(name).configure({"model": "m"}, options)


def collected(name, earned=(MIXED, SAME), **options):
    """The first step of a recipe; group ``n`` earns what the ``n``-th list says, in turn."""
    told: dict[int, int] = {}

    def earns(problem, group, rng):
        told[group] = told.get(group, -1) + 1
        return earned[group % len(earned)][told[group] % 4]

    chosen = {"problems_per_step": 2, "group_size": 4, "max_episode_tokens": 1000, **options}
    config = configured(name, **chosen)
    parts, rollout = make_parts(config, shares_weights=True), config.rollout
    options = StepOptions(
        problems_per_step=rollout.problems_per_step,
        group_size=rollout.group_size,
        oversample=rollout.oversample,
        refill=rollout.refill,
    )
    return Collector(parts, options, StepServices(SmallPlayer(earns), parts.sampler_factory(None, 0))).collect(0)


@pytest.mark.parametrize("name", OURS)
def test_it_prescribes_what_its_source_does(name):
    config, expected = configured(name), {"selector": "all", "advantage": "group_norm", **PRESCRIBED[name]}
    assert [part.name for part in config.parts.reward] == expected.get("reward", ["return"])
    assert (config.parts.selector.name, config.parts.advantage.name) == (expected["selector"], expected["advantage"])
    assert config.parts.aggregation.name == expected["mean"]
    parts = make_parts(config, shares_weights=True)
    term = parts.terms[0]
    assert len(parts.terms) == len(expected.get("terms", [term]))
    if expected["clip"] is None:
        assert isinstance(term, ReinforceLoss)
    else:
        assert (term.low, term.high, term.level) == expected["clip"]
    rollout = config.rollout
    assert (rollout.refill, rollout.oversample) == (expected.get("refill", 0), expected.get("oversample", 1))
    assert (config.optim.updates_per_rollout, config.optim.minibatches) == (1, expected.get("minibatches", 1))


@pytest.mark.parametrize("name", OURS)
def test_it_is_one_short_file_that_names_its_paper(name):
    recipe = TRAINERS.get(name)
    assert recipe.name == name
    text = (ROOT / f"trainers/recipes/{name}.py").read_text()
    assert len(text.splitlines()) < 30
    assert recipe.paper in inspect.cleandoc(text.split('"""')[1])
    assert re.fullmatch(r"arXiv \d{4}\.\d{5}|Williams 1992", recipe.paper)
    assert recipe.summary


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("grpo", 0.8660),
        ("grpo_clip_higher", 0.8660),
        ("gspo", 0.8660),
        ("dr_grpo", 0.5),
        ("rloo", 0.6667),
        ("lite_ppo", 1.0801),
    ],
)
def test_the_golden_advantages(name, size):
    batch = collected(name)
    values = np.array([row.advantage for row in batch.rows])
    assert values[:4] == pytest.approx(size * SIGNS, abs=4e-4)
    # A group without a difference is left out by grpo_clip_higher; elsewhere its tokens stay in the mean.
    assert (values[4:] == 0).all()
    assert len(values) == (4 if name == "grpo_clip_higher" else 8)


def test_grpo_holds_to_its_reference_with_the_papers_weight():
    """The divergence of a token is that of ``kl_penalty_forward`` in verl-project/verl@1dda039b9, run by itself."""
    _, kl = make_parts(configured("grpo"), shares_weights=True).terms
    assert (kl.coef, kl.estimator) == (0.04, "k3")
    batch = tokens([[-1.0, -2.0, -0.5, -3.0]], reference=[[-0.5, -2.5, -0.5, -1.0]])
    expected = [0.14872127, 0.10653066, 0.0, 4.38905610]
    assert (kl(batch)[0] / 0.04).tolist() == pytest.approx(expected, abs=1e-7)


def test_every_recipe_names_its_source_and_the_date_of_the_comparison():
    ours = {path.stem for path in (ROOT / "trainers/recipes").glob("[a-z]*.py")}
    for name in sorted(ours):
        recipe = TRAINERS.get(name)
        assert date.fromisoformat(recipe.checked) >= date(2026, 11, 24), name
        assert re.search(r"@[0-9a-f]{7}|arXiv \d{4}\.\d{5}|Machine Learning", recipe.source), name


def test_reinforce_learns_from_a_group_without_a_difference():
    values = [row.advantage for row in collected("reinforce").rows]
    assert values == pytest.approx([0.75, -0.25, -0.25, 0.75, *[-0.25] * 4])


def test_roc_keeps_half_of_what_was_played():
    batch = collected("grpo_roc", earned=(MIXED,))
    assert [len(group) for group in batch.groups] == [8, 8]
    assert len(batch.rows) == 8
    assert {decision.reason for group in batch.decisions for decision in group} == {"", "draw"}, (
        "the penalties are equal"
    )


def test_roc_with_refill_replaces_groups_without_a_difference():
    batch = collected("grpo_roc", earned=(MIXED, SAME, MIXED), refill=3)
    assert [row.episode.group for row in batch.rows] == [0] * 4 + [2] * 4
    assert {decision.reason for decision in batch.decisions[1]} == {"equal"}


class TestDapo:
    def test_groups_all_right_or_all_wrong_are_replaced(self):
        batch = collected("dapo", earned=([1.0] * 4, MIXED, SAME, MIXED))
        assert {row.episode.group for row in batch.rows} == {1, 3}
        assert [group[0].round for group in batch.decisions] == [0, 0, 1, 2]

    def test_a_group_all_right_is_replaced_also_where_lengths_make_rewards_differ(self):
        # Episodes have 2 to 8 tokens, so some pass the soft limit of 6.4.
        batch = collected("dapo", earned=([1.0] * 4,), max_episode_tokens=8)
        assert len({episode.reward for group in batch.groups for episode in group}) > 1
        assert batch.rows == []
        assert len(batch.groups) == 2 * 10
        assert {decision.reason for group in batch.decisions for decision in group} == {"equal"}

    def test_the_punishment_is_that_of_the_runs_budget(self):
        config = configured("dapo", max_episode_tokens=20480)
        overlong = make_parts(config, shares_weights=True).rewards[1].score
        assert (overlong.limit, overlong.buffer) == (20480, None)
        with pytest.raises(ConfigurationError, match="'overlong', the buffer"):
            configured("dapo", max_episode_tokens=100, reward=["return", "overlong:buffer=200"])
