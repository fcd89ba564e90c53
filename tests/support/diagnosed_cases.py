"""For each check of the diagnosis: a run with its fault, and the nearest run without it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from diagnosed import SINCE, change, clean

from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.facts import digest
from rstar2_env.diagnosis.record import RunRecord, StepData

Made = Callable[[], RunRecord]
ERRORS = (ToolStatus.EXCEPTION, ToolStatus.SYNTAX_ERROR, ToolStatus.MALFORMED, ToolStatus.TIMEOUT)


def share(of: float, **values):
    """A change of that share of the episodes."""
    return lambda one, draw: replace(one, **values) if draw.random() < of else one


def wrong(**more):
    return change(correct=False, reward=0.0, verdict="different", **more)


def together(one, draw):
    """The same text and answer for every episode of a group; a third of the groups is right."""
    correct = one.group % 3 == 0
    return replace(one, text=one.problem, correct=correct, reward=float(correct))


def easy(one, draw):
    """A short right answer, the same for every episode of the group, to all but one problem of every second step."""
    same = one.group or one.step % 2
    return replace(one, text=one.problem, correct=True, reward=1.0, tokens=6) if same else one


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
    "gradient_zero": (lambda: clean(grad_norm=0.0), lambda: clean(grad_norm=0.0, tokens__trained=0.0, episode=wrong())),
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
    "episodes_identical": (
        lambda: clean(episode=together, config={"rollout": {"temperature": 0.01}}),
        lambda: clean(episode=easy),
    ),
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
        lambda: generating(300.0, seconds__rollout=9.0, seconds__tool=4.0),
        lambda: generating(600.0, seconds__rollout=9.0, rollout__tokens=430),
    ),
    "process_waits": (lambda: waiting(0.6), lambda: waiting(0.2)),
    "memory_grows": (lambda: clean(memory__process_gib=growing), lambda: clean(memory__process_gib=3.0)),
}
"""For each check: a run with its fault from step ``SINCE`` on, and a run that looks like it without the fault."""


def generating(speed: float, **figures: float) -> RunRecord:
    run = clean(speed__generated_tokens_per_second=speed, **figures)
    for step in run.steps:
        step.figures.setdefault("speed/generated_tokens_per_second", 1000.0)
    return run


def waiting(share: float) -> RunRecord:
    run = clean(seconds__share_waiting=share)
    run.processes = 2
    return run
