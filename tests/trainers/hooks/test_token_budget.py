"""``token_budget``: a run ends after the rollout that spends its budget of generated tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hook_events import HookEvents

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.hooks.token_budget import TokenBudget
from rstar2_env.trainers.samplers.base import GroupResult, Start


def group(*lengths: int, kept: int = 1) -> GroupResult:
    return GroupResult(Start(0), 0, len(lengths), 0, 0.0, 0.0, kept, lengths=lengths)


def step(events: HookEvents, *, between: bool = True) -> bool:
    """Whether the run stops after its next step."""
    events.run.step += 1
    events.run.between_rollouts = between
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    events.hook.on_step_end(None, SimpleNamespace(global_step=events.run.step), control)
    assert control.should_save == control.should_training_stop, "the last weights have a checkpoint"
    return bool(control.should_training_stop)


def test_the_tokens_of_all_groups_count_rejected_ones_too() -> None:
    events = HookEvents(TokenBudget(tokens=30))
    events.hook.observe([group(5, 6), group(3, kept=0)])
    assert not step(events)
    events.hook.observe([group(7), group(8)])
    assert not step(events), "29 tokens"
    events.hook.observe([group(1)])
    assert step(events)
    assert events.noted() == [3]


def test_the_last_rollout_is_trained_on_to_its_end() -> None:
    events = HookEvents(TokenBudget(tokens=10))
    events.hook.observe([group(12)])
    assert [step(events, between=between) for between in (False, False, True)] == [False, False, True]


def test_a_resumed_run_goes_on_counting() -> None:
    events = HookEvents(TokenBudget(tokens=20))
    events.hook.observe([group(15)])
    resumed = events.resumed(TokenBudget(tokens=20))
    resumed.hook.observe([group(5)])
    assert step(resumed)


@pytest.mark.train
def test_a_run_that_ended_at_its_budget_trains_no_further_step_when_it_resumes(letter_options: dict[str, Any]) -> None:
    options = {**letter_options, "steps": 3, "hook": ["token_budget:tokens=1"]}
    options["eval"] = {"every": 2, "episodes": 4, "env_options": {}}
    for resume in (False, True, True):
        trainer = trainers.make("grpo", **options, resume=resume)
        try:
            result = trainer.train()
        finally:
            trainer.close()
        run = read_run(result.output_dir)
        assert [line["step"] for line in run.metrics() if "loss" in line] == [1]
        assert [one.step for one in run.evaluations] == [0, 1], "the final weights are evaluated once"
        assert run.finished


def test_a_budget_of_no_tokens_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="tokens"):
        TokenBudget(tokens=0)
