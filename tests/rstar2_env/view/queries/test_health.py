"""The strip of a run's health: values as recorded, and states that are those of the diagnosis."""

from __future__ import annotations

import pytest

from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.view.queries.health import SIGNS, health_of

STEPS = range(1, 41)


def sign_of(label, metrics, kind="training", config=None):
    return {one["label"]: one for one in health_of(kind, config or {}, metrics)}.get(label)


def test_a_figure_has_its_last_value_and_a_curve_that_ends_with_it():
    metrics = {step: {"policy/entropy": 1 / step} for step in range(1, 201)}
    sign = sign_of("Entropy", metrics)
    assert (sign["last"], sign["step"]) == (1 / 200, 200)
    assert sign["values"][-1] == 1 / 200
    assert 40 <= len(sign["values"]) <= 60
    assert set(sign["values"]) <= {1 / step for step in metrics}


STATES = {
    "Entropy": [
        ({step: {"policy/entropy": 0.4} for step in STEPS}, "ok", ""),
        ({step: {"policy/entropy": 0.4 if step < 20 else 0.01} for step in STEPS}, "watch", "0.01 nats"),
        ({step: {"policy/entropy": 0.01 if step < 20 else 0.4} for step in STEPS}, "ok", ""),
        ({step: {"policy/entropy": 0.4 if step < 20 else 3.0} for step in STEPS}, "problem", "3 nats"),
    ],
    "Held-out success": [
        ({step: {"eval/pass_rate": 0.5 + step / 100} for step in STEPS}, "ok", ""),
        ({step: {"eval/pass_rate": 0.9 - step / 50} for step in STEPS}, "problem", "fell from 0.880"),
    ],
    "Groups without a signal": [
        ({step: {"groups/signal": 6.0, "groups/none_correct": 2.0} for step in STEPS}, "ok", ""),
        ({step: {"groups/signal": 2.0, "groups/all_correct": 6.0} for step in STEPS}, "watch", "25 % of the groups"),
        ({step: {"groups/signal": 0.0, "groups/none_correct": 8.0} for step in STEPS}, "problem", "no correct episode"),
    ],
    "Tokens per episode": [({step: {"rollout/tokens": 50.0 * step} for step in STEPS}, "watch", "tokens on average")],
    "KL to the reference": [({step: {"kl": 0.1 * step * step} for step in STEPS}, "problem", "and grows")],
    "Engine against trainer": [
        ({step: {"mismatch/logp_difference": 1e-3} for step in STEPS}, "ok", ""),
        ({step: {"mismatch/logp_difference": 0.4} for step in STEPS}, "problem", "0.4 nats"),
        ({step: {"mismatch/logp_difference": 0.4, "policy/lag": 1.0} for step in STEPS}, "unknown", ""),
    ],
    "Gradient norm": [
        ({step: {"grad_norm": 0.5} for step in STEPS}, "ok", ""),
        ({step: {"grad_norm": None if step == 39 else 0.5} for step in STEPS}, "ok", ""),
        ({step: {"grad_norm": 0.5, "loss": None if step == 40 else 0.1} for step in STEPS}, "problem", "not finite"),
    ],
    "Failed calls": [
        ({step: {"rollout/tool_error_share": 0.1} for step in STEPS}, "ok", ""),
        ({step: {"rollout/tool_error_share": 0.95} for step in STEPS}, "problem", "95 % of the policy's tool calls"),
    ],
}


@pytest.mark.parametrize(("label", "case"), [(label, case) for label, cases in STATES.items() for case in cases])
def test_the_state_of_a_figure_is_that_of_its_checks(label, case):
    metrics, state, says = case
    sign = sign_of(label, metrics)
    assert sign["state"] == state
    assert says in " ".join(sign["says"])
    assert bool(sign["says"]) == (state in ("watch", "problem"))


def test_every_sign_is_tested_and_names_checks_that_exist():
    assert {sign.label for sign in SIGNS} == set(STATES)
    assert all(CHECKS.get(name).name == name for sign in SIGNS for name in sign.checks)


def test_the_share_without_a_signal_is_of_all_groups():
    sign = sign_of(
        "Groups without a signal", {1: {"groups/signal": 3.0, "groups/all_correct": 4.0, "groups/unavailable": 1.0}}
    )
    assert sign["last"] == 5 / 8


def test_options_of_the_run_bound_its_gradient():
    metrics = {step: {"grad_norm": 30.0} for step in STEPS}
    assert sign_of("Gradient norm", metrics)["state"] == "watch"
    assert sign_of("Gradient norm", metrics, config={"optim": {"max_grad_norm": 10.0}})["state"] == "ok"


def test_figures_that_a_run_does_not_record_are_left_out():
    assert [sign["label"] for sign in health_of("training", {}, {1: {"grad_norm": 1.0}})] == ["Gradient norm"]
    assert health_of("training", {}, {}) == []


@pytest.mark.parametrize(("kind", "many"), [("sft", 1), ("evaluation", 0), ("pipeline", 0)])
def test_only_runs_that_train_have_a_health(kind, many):
    assert len(health_of(kind, {}, {1: {"grad_norm": 1.0}})) == many
