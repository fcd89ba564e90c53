"""``reference_reset``, ``policy_refresh`` and ``kl_schedule``: at which steps they act, and which runs they refuse."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hook_events import HookEvents

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.plain_run import PlainRun
from rstar2_env.trainers.hooks.kl_schedule import KlSchedule
from rstar2_env.trainers.hooks.policy_refresh import PolicyRefresh
from rstar2_env.trainers.hooks.reference_reset import ReferenceReset


def evaluated(*figures, **options):
    """The evaluations, from 1, at which the reference was reset, and those at which the optimizer was."""
    events = HookEvents(ReferenceReset(**options))
    for events.run.step, figure in enumerate(figures, start=1):
        events.hook.on_evaluate(None, None, None, metrics={"eval/pass_rate": figure})
    return [[step for step, _ in events.done(f"reset_{what}")] for what in ("reference", "optimizer")]


def test_nothing_is_reset_while_validation_improves():
    assert evaluated(0.1, 0.2, 0.3, 0.3, 0.31, 0.32, 0.32, 0.33) == [[], []]


def test_a_stall_resets_reference_and_optimizer_and_is_counted_anew():
    assert evaluated(0.1, 0.3, 0.3, 0.2, 0.2, 0.2) == [[4, 6], [4, 6]]
    assert evaluated(0.1, 0.3, 0.3, 0.2, 0.3, 0.3) == [[4], [4]]
    assert evaluated(0.1, 0.3, 0.3, 0.2, patience=3) == [[], []]
    assert evaluated(0.1, 0.3, 0.3, 0.2, optimizer=False) == [[4], []]


def test_an_improvement_must_exceed_delta():
    assert evaluated(0.30, 0.31, 0.32, 0.33, delta=0.05) == [[3], [3]]


def test_a_divergence_above_the_bound_resets_too():
    assert HookEvents(ReferenceReset(most_kl=0.5)).logs(0.4, 0.6, 0.5, metric="kl").done("reset_reference") == [
        (2, None)
    ]


def test_a_run_that_could_never_reset_is_refused():
    with pytest.raises(ConfigurationError, match=r"eval\.every"):
        ReferenceReset().bind(PlainRun(12, evaluates=False))
    ReferenceReset(most_kl=0.5).bind(PlainRun(12, evaluates=False))


def test_a_refresh_ends_each_stage_but_the_last():
    assert _ends(PlainRun(12), PolicyRefresh(steps=(4,))) == [4, 8]
    assert _ends(PlainRun(12), PolicyRefresh(steps=(3, 4))) == [3, 7]
    assert _ends(PlainRun(12), PolicyRefresh(steps=(12,))) == []


@pytest.mark.parametrize("steps", [(), (0,), (3, 0), (-1,)])
def test_a_stage_without_steps_is_refused(steps):
    with pytest.raises(ConfigurationError, match="must contain only positive numbers"):
        PolicyRefresh(steps=steps)


def _ends(run, hook):
    events = HookEvents(hook, run)
    for step in range(1, run.steps + 1):
        run.step = step
        hook.on_step_end(None, None, None)
    assert [step for step, _ in events.done("reset_reference")] == [step for step, _ in events.done("reset_optimizer")]
    return [step for step, _ in events.done("reset_reference")]


@pytest.mark.parametrize("begin", range(12))
def test_a_resumed_run_refreshes_at_the_same_steps(begin):
    run = PlainRun(12)
    events = HookEvents(PolicyRefresh(steps=(3, 4)), run)
    for run.step in range(begin + 1, 13):
        events.hook.on_step_end(None, None, None)
    assert [step for step, _ in events.done("reset_reference")] == [step for step in (3, 7) if step > begin]


def test_without_a_reference_the_optimizer_alone_is_refreshed():
    run = PlainRun(12, reference=False)
    events = HookEvents(PolicyRefresh(steps=(5,)), run)
    for run.step in range(1, 13):
        events.hook.on_step_end(None, None, None)
    assert [what for _, what, _ in run.done] == ["reset_optimizer"] * 2
    with pytest.raises(ConfigurationError, match="policy_refresh"):
        PolicyRefresh(optimizer=False).bind(PlainRun(12, reference=False))


def test_another_template_in_evaluation_is_refused_with_the_difference():
    class Differs(PlainRun):
        openings: ClassVar = {"train": "solve it\nuser: {question}", "eval": "solve it\n### {question}"}

    with pytest.raises(
        ConfigurationError, match=r"different templates(.|\n)*- user: \{question\}\n\+ ### \{question\}"
    ):
        PolicyRefresh().bind(Differs(12))
    PolicyRefresh(same_template=False).bind(Differs(12))


def test_the_schedule_of_kdrl():
    run = PlainRun(100)
    hook = KlSchedule()
    hook.bind(run)
    for run.step in range(100):
        hook.on_step_begin(None, None, None)
    betas = [value for _, _, value in run.done]
    # Down from 5e-3 by 5e-5 a step, and 1e-3 from step 80 on.
    assert betas[:3] == pytest.approx([5e-3, 4.95e-3, 4.9e-3])
    assert betas[79] == pytest.approx(1.05e-3)
    assert betas[80:] == pytest.approx([1e-3] * 20)
