"""Recipes that learn from more than rewards (a teacher, how clean calls were): what each prescribes."""

from __future__ import annotations

import pytest

from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.hooks.kl_schedule import KlSchedule
from rstar2_env.trainers.options.parts import make_parts

PRESCRIBED = {
    "grpo_roc_clean": ("roc", "call_penalty", ["ppo_clip"]),
    "grpo_roc_ties": ("quality_ties", "quality_ties", ["ppo_clip"]),
    "kdrl": ("all", "group_norm", ["ppo_clip", "kdrl"]),
    "opd": ("all", "reinforce", ["opd"]),
    "opsd": ("all", "reinforce", ["opd"]),
    "rl_plus": ("all", "policy_baseline", ["rl_plus", "entropy"]),
}
"""Of each recipe its selector, advantage and loss."""


@pytest.mark.parametrize("name", PRESCRIBED)
def test_it_prescribes_what_its_source_does(name):
    parts = TRAINERS.get(name).configure({"model": "m"}).parts
    assert (parts.selector.name, parts.advantage.name, [part.name for part in parts.loss]) == PRESCRIBED[name]


def test_rl_plus_neither_clips_nor_averages_over_tokens():
    config = TRAINERS.get("rl_plus").configure({"model": "m"})
    term, entropy = make_parts(config, shares_weights=True).terms
    assert (term.low, term.high, term.gamma, entropy.coef) == (None, None, 0.5, 1e-3)
    assert (config.parts.aggregation.name, config.optim.minibatches) == ("const_len", 2)


def test_grpo_roc_clean_ranks_its_right_episodes_and_lowers_the_advantage_of_failing_turns():
    config = TRAINERS.get("grpo_roc_clean").configure({"model": "m"})
    parts = make_parts(config, shares_weights=True)
    assert parts.selector.mode == "rank"
    assert (parts.advantage.malformed, parts.advantage.failed, parts.advantage.how) == (-1, -1, "add")
    assert [component.name for component in parts.rewards] == ["return"]
    assert config.rollout.oversample == 2


def test_kdrl_lowers_the_weight_of_its_term_to_the_floor_in_eighty_steps():
    config = TRAINERS.get("kdrl").configure({"model": "m"})
    _, schedule = make_parts(config, shares_weights=True).hooks
    assert schedule == KlSchedule(start=5e-3, end=1e-3, steps=80, term="kdrl")
    weights = []

    class Run:
        step, steps = 0, 100

        def coefficient(self, term):
            assert term == "kdrl"

        def set_coefficient(self, value, term):
            weights.append(value)

    run = Run()
    schedule.bind(run)
    for run.step in range(100):
        schedule.on_step_begin(None, None, None)
    assert weights[:2] == pytest.approx([5e-3, 4.95e-3])
    assert weights[79] > 1e-3
    assert weights[80:] == pytest.approx([1e-3] * 20)


def test_opsd_is_taught_by_itself_which_is_told_the_answer():
    config = TRAINERS.get("opsd").configure({"model": "m"})
    assert config.model.teacher == "self"
    assert "{answer}" in config.model.teacher_prompt
    assert TRAINERS.get("opd").configure({"model": "m"}).model.teacher is None
