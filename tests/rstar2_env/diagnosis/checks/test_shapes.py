"""Checks name slow, interrupted, partial and late faults, and not what looks alike.

Each case has a run with the fault, and one that looks like it without the fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from random import Random

import pytest
from diagnosed import SINCE, change, clean
from diagnosed_cases import FAULTY

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import EpisodeEntry
from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.facts import facts_of
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData
from rstar2_env.diagnosis.spells import rank_trend, spell

every_check()
Made = Callable[[], RunRecord]
TASKS = ("sums", "primes", "digits", "gcd", "powers")


def first_named(name: str, run: RunRecord) -> int:
    """The first step at which a check names its fault, or 0."""
    check = CHECKS.get(name)
    return next((step.number for step in run.steps if examine(run.until(step.number), checks=[check]).names), 0)


def age(step: int) -> int:
    return step - SINCE + 1


def noisy(value: float, step: int, spread: float = 0.1) -> float:
    return value * math.exp(Random(step).gauss(0, spread))


def of_task(task: str, share: float, **values: object) -> Callable[[EpisodeDigest, Random], EpisodeDigest]:
    """A change of a share of the episodes of one of several tasks, from ``SINCE`` on."""

    def changed(one: EpisodeDigest, draw: Random) -> EpisodeDigest:
        one = replace(one, task=TASKS[(one.group + one.step) % len(TASKS)])
        if one.task == task and one.step >= SINCE and draw.random() < share:
            return replace(one, **values)
        return one

    return changed


def every_second(step: int, value: float) -> float:
    return value if age(step) % 2 else 0.0


def paid(by: Callable[[EpisodeDigest], float], tags: Callable[[Random], int] = lambda draw: 1) -> Made:
    def changed(one: EpisodeDigest, draw: Random) -> EpisodeDigest:
        one = replace(one, tags=tags(draw), statuses=one.statuses if draw.random() < 0.6 else ())
        return replace(one, reward=by(one), rewards={"return": by(one)})

    return lambda: clean(episode=changed, size=8, steps=26)


def drawn(problems: Callable[[EpisodeDigest, Random], int]) -> Made:
    known = clean(steps=1).steps[0].figures | {"sampler/problems": 120.0}
    more = {name.replace("/", "__"): value for name, value in known.items() if name == "sampler/problems"}
    return lambda: clean(
        groups=4, steps=28, episode=lambda one, draw: replace(one, problem=f"p{problems(one, draw)}"), **more
    )


def statuses(late: float) -> Made:
    """Exceptions in a third of the calls of the whole run, and ``blocked`` in many from ``SINCE`` on."""

    def changed(one: EpisodeDigest, draw: Random) -> EpisodeDigest:
        own = ToolStatus.EXCEPTION if draw.random() < 0.35 else ToolStatus.OK
        late_one = one.step >= 30 and draw.random() < late
        return replace(one, statuses=(ToolStatus.BLOCKED if late_one else own,))

    return lambda: clean(since=1, episode=changed)


def learned(tokens: float) -> Made:
    """The pass rate rises, and stays; then the lengths change."""
    return lambda: clean(
        since=1,
        rollout__tokens=lambda step: 100.0 if step < SINCE else tokens,
        rollout__pass_rate=lambda step: 0.3 + 0.04 * min(step, SINCE - 4),
        rollout__episodes=512,
    )


def labelled(until: int, rank: int = 0) -> Made:
    """Injected faults have labels, on one of two processes up to a step only."""

    def changed(one: EpisodeDigest, draw: Random) -> EpisodeDigest:
        own = one.group % 2
        return replace(one, rank=own, injected=int(draw.random() < 0.3 and (own != rank or one.step < until)))

    return lambda: clean(config=FAULTY, since=1, episode=changed)


def evaluated(*rates: float) -> Made:
    def made() -> RunRecord:
        run = clean()
        run.evaluations = [StepData(5 * at, {"pass_rate": rate, "pass_rate_se": 0.04}) for at, rate in enumerate(rates)]
        return run

    return made


def family(size: int) -> Made:
    """Problems without ids from a family, in training and in 16 held-out episodes."""

    def made() -> RunRecord:
        draw = Random(3)
        run = clean(steps=20)
        for step in [*run.steps, *run.evaluations]:
            asked: dict[int, str] = {}
            step.episodes = [
                replace(one, problem="", question=asked.setdefault(one.group, f"q{draw.randrange(size)}"))
                for one in step.episodes[:16]
            ]
        return run

    return made


def rejected(size: int, kept: bool) -> Made:
    return lambda: clean(size=size, episode=change(kept=lambda one, draw: kept and one.group % 2 == 0))


def resumed(moment: float) -> Made:
    def made() -> RunRecord:
        run = clean(optimizer__second_moment=lambda step: 1e-6 if step < SINCE else moment, since=1)
        run.resumed = [SINCE - 1]
        return run

    return made


def processes(share: Callable[[int], float], slowest: Callable[[int], float] | None = None, **figures: float) -> Made:
    def made() -> RunRecord:
        ranks = {} if slowest is None else {"rollout__slowest_process": slowest}
        run = clean(seconds__share_waiting=share, **ranks, **figures)
        run.processes = 2
        return run

    return made


def memory(by: Callable[[int], float]) -> Made:
    return lambda: clean(memory__process_gib=lambda step: noisy(by(step), step, 0.004), since=1)


def slower(factor: Callable[[int], float]) -> Made:
    return lambda: clean(seconds__rollout=lambda step: noisy(2.0 * factor(age(step)), step))


SHAPES: dict[str, tuple[str, int, Made, Made]] = {
    "a divergence that grows slowly": (
        "kl_runs_away",
        SINCE + 6,
        lambda: clean(kl=lambda step: noisy(0.12 * age(step), step)),
        lambda: clean(kl=lambda step: noisy(0.02 + 0.08 * (1 - math.exp(-age(step) / 5)), step, 0.2)),
    ),
    "a divergence that bursts": (
        "kl_runs_away",
        SINCE + 5,
        lambda: clean(kl=lambda step: 0.25 * 1.3 ** age(step)),
        lambda: clean(kl=lambda step: every_second(step, 3.0) + 0.02),
    ),
    "a lag at every second step": (
        "lag_beyond_bound",
        SINCE,
        lambda: clean(policy__lag=lambda step: every_second(step, 6.0), config={"rollout": {"max_staleness": 1}}),
        lambda: clean(policy__lag=lambda step: every_second(step, 3.0), config={"rollout": {"max_staleness": 1}}),
    ),
    "a part of the ends of turns": (
        "turn_end_untrained",
        SINCE + 2,
        lambda: clean(mask__turn_ends=lambda step: noisy(0.66, step, 0.03)),
        lambda: clean(mask__turn_ends=lambda step: 0.66 if step == SINCE else 1.0),
    ),
    "a verifier that is slow for one task": (
        "verifier_times_out",
        SINCE + 1,
        lambda: clean(since=1, episode=of_task("primes", 0.6, verdict="timeout")),
        lambda: clean(since=1, episode=of_task("primes", 0.05, verdict="timeout")),
    ),
    "answers of one task are cut": (
        "cut_by_turns",
        SINCE + 7,
        lambda: clean(since=1, episode=of_task("gcd", 0.9, end="turns")),
        lambda: clean(since=1, episode=of_task("gcd", 0.3, end="turns")),
    ),
    "answers are cut at every second step": (
        "cut_by_tokens",
        SINCE + 3,
        lambda: clean(episode=lambda one, draw: replace(one, end="tokens") if age(one.step) % 2 else one),
        lambda: clean(episode=lambda one, draw: replace(one, end="tokens") if one.step == SINCE else one),
    ),
    "a sandbox that is away for a few episodes": (
        "sandbox_unavailable",
        SINCE + 5,
        lambda: clean(episode=lambda one, draw: replace(one, end="unavailable") if draw.random() < 0.12 else one),
        lambda: clean(episode=lambda one, draw: replace(one, end="unavailable") if draw.random() < 0.02 else one),
    ),
    "a sampler of six problems": (
        "sampler_stuck",
        SINCE + 7,
        drawn(lambda one, draw: (one.step * 4 + one.group) % 6),
        drawn(lambda one, draw: (one.step * 7 + one.group * 3) % 40),
    ),
    "memory in stairs": (
        "memory_grows",
        15,
        memory(lambda step: 3.0 + 0.6 * (step // 5)),
        memory(lambda step: 3.0 + 0.8 * (step >= 8)),
    ),
    "memory that grows by a share": (
        "memory_grows",
        19,
        memory(lambda step: 4.0 * 1.02**step),
        memory(lambda step: 2.0 + 0.07 * (step % 9)),
    ),
    "throughput that falls by a tenth in each step": (
        "throughput_falls",
        SINCE + 9,
        slower(lambda age: 1.1**age),
        slower(lambda age: 3.0 if age == 2 else 1.2),
    ),
    "throughput that halves": ("throughput_falls", SINCE + 6, slower(lambda age: 2.1), slower(lambda age: 1.5)),
    "processes that wait at some steps more than at others": (
        "process_waits",
        SINCE + 6,
        processes(lambda step: 0.22 if age(step) % 3 == 2 else 0.42),
        processes(lambda step: 0.42 if age(step) % 3 == 2 else 0.18),
    ),
    "one process is the slowest in most steps": (
        "process_waits",
        SINCE + 5,
        processes(lambda step: 0.4, lambda step: float(step % 5 != 0)),
        processes(lambda step: 0.4, lambda step: float(step % 2)),
    ),
    "processes wait for more than a quarter of a second": (
        "process_waits",
        SINCE + 5,
        processes(lambda step: 0.4, seconds__rollout=0.8),
        processes(lambda step: 0.4, seconds__rollout=0.3),
    ),
    "processes wait half of the time in turn": (
        "process_waits",
        SINCE + 7,
        processes(lambda step: 0.6, lambda step: float(step % 2)),
        processes(lambda step: 0.45, lambda step: float(step % 2)),
    ),
    "a status that dominates late": ("status_dominates", 33, statuses(0.8), statuses(0.3)),
    "any number of marks is paid": (
        "reward_pays_format",
        SINCE + 5,
        paid(lambda one: 0.4 if one.tags else -0.2, lambda draw: draw.choice((0, 1, 2, 3))),
        paid(lambda one: 0.4 * (one.tags > 0) + 0.6 * bool(one.correct), lambda draw: draw.choice((0, 1, 2, 3))),
    ),
    "a call is paid": (
        "reward_pays_format",
        SINCE + 5,
        paid(lambda one: 10.0 * bool(one.statuses) + bool(one.correct)),
        paid(lambda one: 0.3 * bool(one.statuses) + bool(one.correct)),
    ),
    "the format alone is paid in a part of the groups": (
        "reward_pays_format",
        SINCE + 8,
        paid(
            lambda one: float(one.tags == 1 if one.group % 2 else bool(one.correct)), lambda draw: draw.choice((0, 1))
        ),
        paid(lambda one: float(bool(one.correct)), lambda draw: draw.choice((0, 1))),
    ),
    "answers become longer after the policy has learned": (
        "lengths_explode",
        SINCE + 5,
        learned(400.0),
        learned(200.0),
    ),
    "labels are lost at a step": ("faults_unlabelled", 22, labelled(SINCE), labelled(100)),
    "a success that falls below several evaluations": (
        "held_out_falls",
        25,
        evaluated(0.6, 0.62, 0.61, 0.6, 0.59, 0.46),
        evaluated(0.6, 0.62, 0.61, 0.6, 0.59, 0.5),
    ),
    "a selector that rejects groups of two": (
        "all_rejected",
        SINCE + 2,
        rejected(2, kept=False),
        rejected(2, kept=True),
    ),
    "a level that moved before": (
        "curriculum_still",
        29,
        lambda: clean(sampler__level=lambda step: min(step, 10), rollout__pass_rate=0.92, since=1),
        lambda: clean(sampler__level=lambda step: step // 8, rollout__pass_rate=0.92, since=1),
    ),
    "weights that fall behind in stairs": (
        "weights_stale",
        SINCE + 8,
        lambda: clean(mismatch__logp_difference=lambda step: 0.004 * (1 + age(step) // 3), policy__lag=0.0),
        lambda: clean(mismatch__logp_difference=lambda step: noisy(0.02, step, 0.05), policy__lag=0.0),
    ),
    "moments that a resume lost": ("optimizer_lost", SINCE, resumed(3e-7), resumed(8e-7)),
}


def without_lag(run: RunRecord) -> RunRecord:
    for step in run.steps:
        step.figures["policy/lag"] = 0.0
    return run


def made(name: str, of: Made) -> RunRecord:
    return without_lag(of()) if SHAPES[name][0] == "weights_stale" else of()


@pytest.mark.parametrize("name", SHAPES)
def test_a_fault_of_another_shape_is_named_soon(name: str) -> None:
    check, latest, fault, _ = SHAPES[name]
    assert 0 < first_named(check, made(name, fault)) <= latest


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_that_looks_alike_is_not_named(name: str) -> None:
    check, _, _, alike = SHAPES[name]
    assert first_named(check, made(name, alike)) == 0


@pytest.mark.parametrize("size", [12, 100_000])
def test_a_small_family_repeats_held_out_problems_by_chance(size: int) -> None:
    assert first_named("held_out_in_training", family(size)()) == 0


@pytest.mark.parametrize(("name", "named"), [("judge", True), ("overlong", False)])
def test_a_score_of_zero_counts_for_a_component_that_is_named_judge(name: str, named: bool) -> None:
    run = clean(since=1, episode=change(rewards=lambda one, draw: {"return": one.reward, name: 0.0}))
    assert (first_named("judge_constant", run) > 0) is named


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<|start|>assistant<|channel|>analysis<|message|>Four.", True),
        ("Four.<|eot_id|>", True),
        ("<｜tool▁calls▁begin｜>", True),
        ("Four.<end_of_turn>\n<start_of_turn>user", True),
        ("[INST] What is 2 + 2? [/INST]", True),
        ("Four.\nUser: And 3 + 3?\nAssistant: Six.", True),
        ("### Response:\nFour.", True),
        ("If |x| < 3, then <x|y> is at most 9: a<|b.", False),
        ("<tool_call>\n{}\n</tool_call><answer>\\boxed{4}</answer>", False),
        ("The user: a person. Response: none.", False),
        ("7<|pad|>2<|unk|>", False),
    ],
)
def test_markup_of_any_template_is_found_by_its_form(text: str, found: bool) -> None:
    episode = Episode(messages=[Message("assistant", text)])
    assert facts_of(EpisodeEntry(episode, 1), "train-1-0").markup is found


@pytest.mark.parametrize(
    ("values", "covered"),
    [
        ("0011100", (3, 5)),
        ("0101010", (2, 6)),
        ("0110011", None),
        ("0110111", (2, None)),
        ("0000011", None),
    ],
)
def test_a_spell_may_have_single_gaps(values: str, covered: tuple[int, int | None] | None) -> None:
    found = spell([(at, float(one)) for at, one in enumerate(values, 1)], lambda value: value > 0.4)
    assert (found and (found.since, found.until)) == covered


def test_a_gap_that_lowers_the_mean_too_much_is_not_part_of_a_spell() -> None:
    points = [(at, value) for at, value in enumerate([0.5, 0.0, 0.5, 0.0, 0.5], 1)]
    assert spell(points, lambda value: value > 0.4) is None


@pytest.mark.parametrize(
    ("values", "least", "most"), [(range(8), 3, 4), ([1, 1, 2, 2, 3, 3], 2, 3), ([1, 2] * 5, -0.5, 0.6), ([4], 0, 0)]
)
def test_a_trend_is_told_from_noise(values: list[float], least: float, most: float) -> None:
    assert least <= rank_trend(list(values)) <= most


UNKNOWN = {one.name: one.default for one in fields(EpisodeDigest) if one.default is not MISSING}


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_no_check_fails_if_a_part_of_the_episodes_is_unknown(name):
    """Logs of other trainers and older runs lack parts; a problem's question, if unknown, cannot replace its id."""
    unknown = {name: UNKNOWN[name]} | ({"question": ""} if name == "problem" else {})
    run = clean(steps=12, since=1, episode=lambda one, draw: replace(one, **unknown))
    without_figures = replace(run, steps=[StepData(step.number, {}, step.episodes) for step in run.steps])
    assert examine(run).names is not None
    assert examine(without_figures).names is not None


def test_no_check_fails_if_no_episode_counts():
    """If the infrastructure fails in every episode, steps have no groups."""
    run = clean(steps=12, since=1, episode=lambda one, draw: replace(one, available=False))
    run.steps[-1].figures.pop("sampler/problems", None)
    assert "all_unavailable" in examine(run).names
