"""Every check names its fault from the step at which it shows, and is silent on the nearest look-alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from diagnosed import SINCE, change, clean

from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.checks.infrastructure import fault_rate
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.facts import digest
from rstar2_env.diagnosis.record import RunRecord, StepData

Made = Callable[[], RunRecord]
ERRORS = (ToolStatus.EXCEPTION, ToolStatus.SYNTAX_ERROR, ToolStatus.MALFORMED, ToolStatus.TIMEOUT)


def share(of: float, **values):
    """A change of that share of the episodes."""
    return lambda one, draw: replace(one, **values) if draw.random() < of else one


def wrong(**more):
    return change(correct=False, reward=0.0, verdict="different", **more)


def growing(step: int) -> float:
    return 2.0 + 0.03 * step


def resumed(updates: Callable[[int], float]) -> Made:
    def made() -> RunRecord:
        run = clean(optimizer__updates=updates)
        run.resumed = [SINCE - 1]
        return run

    return made


def with_evaluations(*rates: float, **figures) -> Made:
    def made() -> RunRecord:
        run = clean(**figures)
        run.evaluations = [
            StepData(10 * at, {"pass_rate": rate, "pass_rate_se": 0.02}) for at, rate in enumerate(rates)
        ]
        return run

    return made


def repeated(copied: bool) -> Made:
    """Each second group of a step has the problem, and perhaps the texts, of the group before it."""

    def made() -> RunRecord:
        run = clean()
        for step in run.steps[SINCE - 1 :]:
            groups = step.groups()
            episodes = []
            for at, group in enumerate(groups):
                source = groups[at - at % 2]
                episodes += [
                    replace(
                        one, problem=other.problem, question=other.question, text=other.text if copied else one.text
                    )
                    for one, other in zip(group, source, strict=True)
                ]
            step.episodes = episodes
        return run

    return made


def contaminated(fresh: bool) -> Made:
    def made() -> RunRecord:
        run = clean()
        held_out = run.evaluations[0].episodes
        for step in run.steps[SINCE - 1 :]:
            at = step.number % len(held_out)
            question = digest(f"new {step.number}") if fresh else held_out[at].question
            step.episodes = [replace(one, question=question) if one.group == 0 else one for one in step.episodes]
        return run

    return made


def rising(step: int) -> float:
    return 0.5 + 0.01 * max(0, step - SINCE)


FAULTY = {"rollout": {"wrappers": ["fault_injection:rate=0.3"]}}
FORMAT = change(
    reward=lambda one, draw: float(one.tags == 1), rewards=lambda one, draw: {"return": float(one.tags == 1)}
)
BOTH = change(reward=lambda one, draw: 0.5 * (one.tags == 1) + 0.5 * bool(one.correct))
VARIED = change(rewards=lambda one, draw: {"return": one.reward, "judge": draw.choice([0.6, 0.7])})
JUDGED = change(rewards=lambda one, draw: {"return": one.reward, "judge": 0.7})
CASES: dict[str, tuple[Made, Made]] = {
    "gradient_nan": (lambda: clean(grad_norm=math.nan), lambda: clean(grad_norm=1e4, steps=18)),
    "gradient_zero": (lambda: clean(grad_norm=0.0), lambda: clean(grad_norm=0.0, tokens__trained=0.0)),
    "gradient_clipped": (lambda: clean(grad_norm=30.0), lambda: clean(grad_norm=8.0)),
    "learning_rate_high": (lambda: clean(weights__change=0.05), lambda: clean(weights__change=0.005)),
    "learning_rate_low": (lambda: clean(weights__change=1e-9), lambda: clean(weights__change=0.0, tokens__trained=0.0)),
    "all_wrong": (lambda: clean(episode=wrong()), lambda: clean(rate=0.1)),
    "all_right": (lambda: clean(episode=change(correct=True, reward=1.0)), lambda: clean(rate=0.85)),
    "all_rejected": (
        lambda: clean(episode=change(kept=False)),
        lambda: clean(episode=change(kept=False, reward=0.5)),
    ),
    "all_unavailable": (
        lambda: clean(episode=change(available=False, end="unavailable")),
        lambda: clean(episode=share(0.05, available=False, end="unavailable")),
    ),
    "few_signals": (
        lambda: clean(groups__signal=1, groups__none_correct=1, groups__all_correct=6),
        lambda: clean(groups__signal=3, groups__none_correct=1, groups__all_correct=4),
    ),
    "group_small": (lambda: clean(size=2), lambda: clean(size=4, rate=0.2)),
    "reward_constant": (lambda: clean(episode=change(reward=0.2)), lambda: clean(episode=wrong())),
    "reward_equal_within": (
        lambda: clean(episode=change(reward=lambda one, draw: one.group / 8)),
        lambda: clean(episode=lambda one, draw: replace(one, correct=one.group < 4, reward=float(one.group < 4))),
    ),
    "reward_pays_format": (lambda: clean(episode=FORMAT), lambda: clean(episode=BOTH)),
    "reward_exploited": (
        with_evaluations(0.5, 0.6, 0.6, 0.5, 0.4, rollout__reward=rising),
        with_evaluations(0.5, 0.6, 0.6, 0.5, 0.4, rollout__reward=0.5),
    ),
    "kl_runs_away": (lambda: clean(kl=lambda step: 0.1 * (step - SINCE + 4) ** 1.5), lambda: clean(kl=0.8, since=1)),
    "entropy_collapsed": (lambda: clean(policy__entropy=0.02), lambda: clean(policy__entropy=0.08)),
    "entropy_exploded": (lambda: clean(policy__entropy=2.5), lambda: clean(policy__entropy=2.5, since=1)),
    "engine_differs": (
        lambda: clean(mismatch__logp_difference=0.3, policy__lag=0.0, since=1),
        lambda: clean(mismatch__logp_difference=0.03, policy__lag=0.0, since=1),
    ),
    "weights_stale": (
        lambda: clean(mismatch__logp_difference=lambda step: 0.004 * step, policy__lag=0.0, since=1),
        lambda: clean(mismatch__logp_difference=lambda step: 0.05 + 0.001 * (step % 3), policy__lag=0.0, since=1),
    ),
    "sampling_truncated": (
        lambda: clean(config={"rollout": {"top_p": 0.9}}),
        lambda: clean(config={"rollout": {"top_p": 1.0, "top_k": 0}}),
    ),
    "lag_beyond_bound": (
        lambda: clean(policy__lag=2.0),
        lambda: clean(policy__lag=2.0, config={"rollout": {"max_staleness": 1}}),
    ),
    "clip_never": (
        lambda: clean(clip__low=0, clip__high=0, since=1),
        lambda: clean(clip__low=0, clip__high=lambda step: 1e-4 * (step == 2), since=1),
    ),
    "clip_always": (lambda: clean(clip__high=0.7), lambda: clean(clip__high=0.2)),
    "environment_trained": (lambda: clean(mask__environment=0.01), clean),
    "turn_end_untrained": (lambda: clean(mask__turn_ends=0.0), lambda: clean(mask__turn_ends=0.8)),
    "template_wrong": (lambda: clean(episode=share(0.6, markup=True)), lambda: clean(episode=share(0.02, markup=True))),
    "prompts_cut": (lambda: clean(prompt__cut=0.3), lambda: clean(prompt__cut=0.01)),
    **{
        f"cut_by_{end}": (
            lambda end=end: clean(episode=share(0.5, end=end)),
            lambda end=end: clean(episode=share(0.1, end=end)),
        )
        for end in ("tokens", "turns", "time")
    },
    "lengths_explode": (
        lambda: clean(rollout__tokens=500),
        lambda: clean(rollout__tokens=500, rollout__pass_rate=0.9),
    ),
    "lengths_collapse": (
        lambda: clean(rollout__tokens=20),
        lambda: clean(rollout__tokens=20, rollout__pass_rate=0.9),
    ),
    "repetition": (lambda: clean(episode=change(repetition=0.7)), lambda: clean(episode=change(repetition=0.3))),
    "tool_unused": (lambda: clean(rollout__tool_calls=0.01), lambda: clean(rollout__tool_calls=0.01, since=1)),
    "tool_fails": (
        lambda: clean(episode=change(statuses=lambda one, draw: (draw.choice(ERRORS),))),
        lambda: clean(episode=change(statuses=lambda one, draw: (draw.choice([*ERRORS, ToolStatus.OK]),))),
    ),
    "status_dominates": (
        lambda: clean(episode=change(statuses=(ToolStatus.OK, *3 * (ToolStatus.TIMEOUT,)))),
        lambda: clean(episode=change(statuses=lambda one, draw: (draw.choice(ERRORS), draw.choice(ERRORS)))),
    ),
    "sandbox_unavailable": (
        lambda: clean(episode=share(0.4, statuses=(ToolStatus.UNAVAILABLE,))),
        lambda: clean(episode=share(0.03, statuses=(ToolStatus.UNAVAILABLE,))),
    ),
    "faults_unlabelled": (
        lambda: clean(config=FAULTY),
        lambda: clean(config=FAULTY, since=1, episode=share(0.2, injected=1)),
    ),
    "verifier_times_out": (
        lambda: clean(episode=share(0.3, verdict="timeout")),
        lambda: clean(episode=share(0.01, verdict="timeout")),
    ),
    "judge_constant": (lambda: clean(episode=JUDGED), lambda: clean(episode=VARIED)),
    "duplicates": (
        lambda: clean(episode=change(question=lambda one, draw: digest(one.problem[:2]))),
        lambda: clean(
            episode=lambda one, draw: replace(one, problem=one.problem[:2], question=digest(one.problem[:2]))
        ),
    ),
    "held_out_in_training": (contaminated(False), contaminated(True)),
    "same_seeds": (repeated(True), repeated(False)),
    "sampler_stuck": (
        lambda: clean(episode=lambda one, draw: replace(one, problem=f"p{one.group % 2}")),
        lambda: clean(episode=lambda one, draw: replace(one, problem=f"p{one.group % 2}"), since=1),
    ),
    "curriculum_still": (
        lambda: clean(sampler__level=1, rollout__pass_rate=0.97, since=1),
        lambda: clean(sampler__level=1, rollout__pass_rate=0.6, since=1),
    ),
    "evaluation_temperature": (lambda: clean(config={"eval": {"temperature": 0.0}}), clean),
    "held_out_falls": (with_evaluations(0.5, 0.6, 0.4), with_evaluations(0.5, 0.6, 0.56)),
    "optimizer_lost": (resumed(lambda step: step - SINCE + 1), resumed(float)),
    "throughput_falls": (
        lambda: clean(seconds__rollout=9.0, seconds__tool=4.0),
        lambda: clean(seconds__rollout=9.0, rollout__tokens=430),
    ),
    "process_waits": (lambda: waiting(0.6), lambda: waiting(0.2)),
    "memory_grows": (lambda: clean(memory__process_gib=growing), lambda: clean(memory__process_gib=3.0)),
}
"""For each check: a run with its fault from step ``SINCE`` on, and a run that looks like it without the fault."""


def waiting(share: float) -> RunRecord:
    run = clean(seconds__share_waiting=share)
    run.processes = 2
    return run


def check(name: str, run: RunRecord):
    """The finding of one check, or None."""
    return next(iter(examine(run, checks=[CHECKS.get(name)])), None)


def test_every_check_has_a_fault_and_a_look_alike() -> None:
    assert set(CASES) == set(CHECKS.names())


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_named_with_its_steps_its_figures_and_what_to_change(name) -> None:
    found = check(name, CASES[name][0]())
    assert found is not None
    assert found.until is None
    assert found.says
    assert found.change


@pytest.mark.parametrize("name", CASES)
def test_the_nearest_look_alike_is_not_named(name) -> None:
    alike = CASES[name][1]()
    assert CHECKS.get(name).applies(alike)
    assert CHECKS.get(name).lacks(alike) == []
    assert check(name, alike) is None


@pytest.mark.parametrize("name", ["gradient_zero", "entropy_collapsed", "environment_trained"])
def test_a_check_whose_figure_never_has_a_value_is_not_recorded(name) -> None:
    figure = CHECKS.get(name).needs[0]
    found = examine(clean(steps=8, since=1, **{figure.replace("/", "__"): math.nan}))
    assert found.not_recorded[name] == [figure]


def test_a_loss_that_is_never_a_number_is_named() -> None:
    found = check("gradient_nan", clean(steps=8, since=1, loss=math.nan, grad_norm=math.nan))
    assert (found.since, found.until) == (1, None)


@pytest.mark.parametrize(("value", "until"), [(None, None), (0.4, 40)])
def test_a_loss_that_is_not_a_number_ends_with_the_first_number_and_not_with_a_step_in_progress(value, until) -> None:
    run = clean(loss=math.nan)
    run.add(StepData(41, {} if value is None else {"loss": value}))
    assert check("gradient_nan", run).until == until


def test_prompts_are_counted_by_the_mark_of_their_episodes() -> None:
    marked = clean(since=1, episode=lambda one, draw: replace(one, cut_prompt=one.step >= SINCE and one.group < 2))
    assert check("prompts_cut", marked).figures["share cut"] == pytest.approx(0.25)
    assert examine(clean(), checks=[CHECKS.get("prompts_cut")]).not_recorded["prompts_cut"] == ["cut_prompt|prompt/cut"]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("which", [0, 1], ids=["fault", "look_alike"])
def test_a_run_in_progress_whose_old_episodes_are_dropped_is_judged_as_the_whole_run(name, which) -> None:
    whole, made = (CASES[name][which]() for _ in range(2))
    run = RunRecord(made.name, made.kind, made.config, resumed=made.resumed, processes=made.processes)
    for step in made.steps:
        run.add(step)
        run.evaluations = [one for one in made.evaluations if one.number <= step.number]
        found = check(name, run)
        if len(run.steps) > 5:
            run.steps[-6].forget()
    expected = check(name, whole)
    assert (found and (found.since, found.until, found.figures)) == (
        expected and (expected.since, expected.until, expected.figures)
    )


@pytest.mark.parametrize(("rejected", "names"), [(8, ["all_rejected"]), (6, [])])
def test_rejected_groups_are_counted_by_figures_in_a_run_without_episodes(rejected, names) -> None:
    run = clean(
        groups__signal=8 - rejected, groups__none_correct=0, groups__all_correct=0, groups__not_selected=rejected
    )
    for step in run.steps:
        step.forget()
    assert examine(run, checks=[CHECKS.get("all_rejected")]).names == names


def test_a_pass_rate_that_rises_by_chance_does_not_excuse_longer_answers() -> None:
    few = {"rollout__tokens": 500, "rollout__pass_rate": 0.6}
    assert check("lengths_explode", clean(**few, rollout__episodes=16)) is not None
    assert check("lengths_explode", clean(**few, rollout__episodes=512)) is None


@pytest.mark.parametrize(("judge", "severity"), [("./mine.py:judge", "note"), (None, None)])
def test_a_component_that_is_always_zero_counts_only_in_a_run_with_a_judge(judge, severity) -> None:
    zero = change(rewards=lambda one, draw: {"return": one.reward, "overlong": 0.0})
    found = check("judge_constant", clean(episode=zero, since=1, config={"rollout": {"judge": judge}}))
    assert (found and found.severity) == severity


@pytest.mark.parametrize(("change", "named"), [(0.4, True), (0.2, False)])
def test_one_step_that_breaks_the_weights_is_enough_if_no_later_step_trains(change: float, named: bool) -> None:
    run = clean(weights__change=lambda step: change if step == SINCE else 0.0)
    found = check("learning_rate_high", run)
    assert (found is not None) is named
    if found is not None:
        assert (found.since, found.until) == (SINCE, SINCE)
        assert found.says.startswith("One step changed the weights by 0.4 ")


def test_adapters_whose_first_steps_are_large_are_not_named() -> None:
    assert check("learning_rate_high", clean(weights__change=lambda step: 0.02 / (step - SINCE + 1))) is None


@pytest.mark.parametrize(("steps", "named"), [(4, False), (5, True)])
def test_a_divergence_that_a_few_tokens_raise_for_some_steps_is_not_named(steps: int, named: bool) -> None:
    run = clean(kl=lambda step: 1.6 if step < SINCE + steps else 0.3)
    assert (check("kl_runs_away", run) is not None) is named


def test_one_update_for_each_rollout_never_clips_and_is_not_named() -> None:
    run = clean(clip__low=0, clip__high=0, since=1, config={"optim": {"updates_per_rollout": 1}})
    assert check("clip_never", run) is None


@pytest.mark.parametrize(
    ("loss", "named"),
    [
        ({"name": "cispo", "high": 4.0}, False),
        ({"name": "cispo", "low": 0.2, "high": 4.0}, False),
        ({"name": "ppo_clip", "low": None, "high": None}, False),
        ({"name": "ppo_clip", "low": None, "high": 0.28}, True),
        ({"name": "gmpo", "low": 0.4, "high": 0.4}, True),
    ],
)
def test_only_a_loss_whose_bounds_remove_gradients_can_clip_too_few_or_too_many_tokens(loss, named) -> None:
    config = {"parts": {"loss": [loss, {"name": "kl", "coef": 0.1}]}}
    never = clean(clip__low=0, clip__high=0, since=1, config=config)
    assert (check("clip_never", never) is not None) is named
    assert (check("clip_always", clean(clip__high=0.9, config=config)) is not None) is named


@pytest.mark.parametrize(("share", "named"), [(0.85, False), (0.97, True)])
def test_ratios_of_sequences_are_clipped_more_often(share: float, named: bool) -> None:
    gspo = {"parts": {"loss": [{"name": "ppo_clip", "level": "sequence", "low": 3e-4, "high": 4e-4}]}}
    assert (check("clip_always", clean(clip__high=share, config=gspo)) is not None) is named


def test_a_clean_run_has_no_finding_and_every_check_looked_or_says_what_it_needs() -> None:
    found = examine(clean())
    assert found.names == []
    assert {*found.silent, *found.not_recorded} >= {one.name for one in every_check() if one.applies(clean())}


@pytest.mark.parametrize(
    ("wrapper", "rate"),
    [
        ("fault_injection:rate=0.3,kinds=timeout+lost", 0.3),
        ({"name": "fault_injection", "rate": {"timeout": 0.1, "lost": 0.2}}, 0.3),
        ({"name": "fault_injection", "options": {"rate": 0.25}}, 0.25),
        ("fault_injection:rate=much", 0.0),
        ("feedback", 0.0),
    ],
)
def test_the_rate_of_injected_faults_is_read_from_every_form_of_the_option(wrapper, rate) -> None:
    assert fault_rate(clean(steps=1, config={"rollout": {"wrappers": [wrapper]}})) == pytest.approx(rate)


def test_an_option_that_is_none_counts_as_unknown() -> None:
    run = clean(steps=1, config={"optim": {"max_grad_norm": None}})
    assert run.option("optim.max_grad_norm", 1.0) == 1.0
    assert not run.has("option:optim.max_grad_norm")


@pytest.mark.parametrize("name", ["gradient_zero", "all_wrong", "entropy_collapsed", "clip_always", "cut_by_tokens"])
def test_a_fault_of_every_step_is_named_within_three_steps_of_its_first(name) -> None:
    run = CASES[name][0]()
    named = next(step for step in range(1, 41) if check(name, run.until(step)) is not None)
    assert named <= SINCE + 4
