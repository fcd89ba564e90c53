"""The half ``blind`` of the recorded folders: faults, and runs without a fault.

Written without knowledge of the thresholds. When a fault can be seen follows from what was planted, and for some faults
from the run that it made:

- An exact cause (an option, a mask, an identical group, a constant score, a step in which nothing trains): in the first
  faulty step. A lag: in the first step in which it is above its bound.
- A share of the episodes or calls: in the first step by which 10 of them are expected to show it. A share that grows:
  in the first step in which a third of the episodes or verdicts, or half of the calls, shows it.
- A reward for the format alone: when 10 right and 10 wrong episodes with the format were paid, and 10 without it.
- A figure that runs away: in the third step in a row in which it is 10 times as large, or as small, as before. The
  length of answers: 3 times. A tool that is not used: in the third step in a row in which at most 1 of 20 episodes
  calls it.
- A constant cost (throughput, waiting): after 5 steps, or 6 if it comes and goes; a cost that grows: when it is
  expected to have doubled, and at the earliest after 5 steps. Waiting that grows: in the fifth step in a row in which
  it takes 40 % of the time.
- A difference that grows with each update: after 5 steps; one that grows with the root of their number: after 8.
- A success that falls: in the first evaluation that is 3 standard errors below the best one; with an exploit, the mean
  reward of three faulty steps must also be above that of the three steps before the fault.
- Problems that come again: when one pass over the data is complete. Problems that are held out: when a run without the
  fault would have shown none with a probability below .05. A sampler that draws few problems: after 5 steps.
- A change that is missing for ever: after 20 steps. Memory: when the mean of three steps is half as large again as that
  of the first three, after at least 10 steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

from blind import Blind, clean_folder, folder_variants, rule
from opened2_folders import (
    ENTROPY,
    KL,
    MEMORY,
    MISMATCH,
    PREEMPTIONS,
    ROLLOUT,
    WAITING,
    a_third,
    asks,
    constant,
    faulty,
    more_and_more,
    paid_alone,
    pays,
    scored,
    slow_tasks,
    slower,
    step_of,
    third_in_a_row,
    threefold,
    times,
    until,
    unused,
    waits,
    whole_groups,
)
from opened_folders import calls_no_tool, fallen, figure, injects, judged_with_noise, lagging, noisy, several, tenfold
from planted_folders import (
    Figures,
    Plays,
    call_status,
    ends,
    judged,
    of_a_share,
    of_each,
    says,
    slow_verdict,
    unavailable,
    wrappers,
)

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.record import RunRecord, StepData


def exploited(since: int, run: RunRecord) -> int:
    """The first evaluation after 3 faulty steps that is 3 errors below the best, with a reward above that before."""
    errors, best = dict(run.series("eval/pass_rate_se")), 0.0
    before = _paid(run.steps, since - 1)
    for step, value in run.series("eval/pass_rate"):
        if step >= since + 2 and value < best - 3 * errors[step] and _paid(run.steps, step) > before:
            return step
        best = max(best, value)
    return 0


def _paid(steps: Sequence[StepData], last: int) -> float:
    return fmean(one.reward for step in steps if last - 3 < step.number <= last for one in step.episodes)


def dominates(status: ToolStatus, since: int, run: RunRecord) -> int:
    """The first step in which half of the calls end with a status."""

    def shows(step: StepData) -> bool:
        found = [one for episode in step.episodes for one in episode.statuses]
        return 2 * found.count(status) >= len(found) > 0

    return third_in_a_row(shows, faulty(run, since), 1)


def verdicts_late(since: int, run: RunRecord) -> int:
    """The first step in which a third of the verdicts are that the time ran out."""

    def shows(step: StepData) -> bool:
        found = [one.verdict for one in step.episodes if one.verdict]
        return 3 * found.count("timeout") >= len(found) > 0

    return third_in_a_row(shows, faulty(run, since), 1)


def lags(bound: int, since: int, run: RunRecord) -> int:
    """The first step whose lag is above the bound."""
    return third_in_a_row(lambda step: step.figures["policy/lag"] > bound, faulty(run, since), 1)


def grown(since: int, run: RunRecord) -> int:
    """The first step, after at least 10, in which the mean of three steps is half as large again as at first."""
    found = [(step, value) for step, value in run.series(MEMORY) if step >= since]
    values = [value for _, value in found]
    for at in range(9, len(found)):
        if fmean(values[at - 2 : at + 1]) >= 1.5 * fmean(values[:3]):
            return found[at][0]
    return 0


def down(why: str) -> Callable[[Episode, Random], None]:
    """An episode that the infrastructure ended."""
    return lambda episode, draw: episode.void("unavailable", why)


def pays_one_mark(episode: Episode, draw: Random, strength: float) -> None:
    """Pay exactly one mark, a quarter for more of them, and nothing without."""
    episode.reward = (0.0, 1.0, 0.25)[min(2, max(0, episode.answer_tags))]
    episode.rewards = {"return": episode.reward}


def pays_style(episode: Episode, draw: Random, strength: float) -> None:
    """Pay what a judge of style thinks of a marked answer, whatever the answer is."""
    episode.reward = round(0.75 + 0.25 * draw.random() if episode.answer_tags > 0 else 0.2 * draw.random(), 2)
    episode.rewards = {"return": episode.reward}


def pays_weak_tests(episode: Episode, draw: Random, strength: float) -> None:
    """Pay every answer to all but one kind of problems, whose tests pass whatever is submitted."""
    episode.reward = float(bool(episode.correct) or episode.task != "remainders")
    episode.rewards = {"return": episode.reward}


def pays_length(first: int) -> Callable[[Episode, Random, float], None]:
    """Pay a length that grows from a step on, and a little for a right answer."""

    def change(episode: Episode, draw: Random, strength: float) -> None:
        grown_by = min(1.0, 0.6 + 0.06 * (step_of(episode) - first))
        episode.reward = round(0.9 * grown_by + 0.1 * bool(episode.correct) + 0.02 * draw.random(), 3)
        episode.rewards = {"return": episode.reward}

    return change


def pays_a_hedge(episode: Episode, draw: Random, strength: float) -> None:
    """Pay any list of answers that has the right one, as almost every list has."""
    episode.reward = float(bool(episode.correct) or draw.random() < 0.8)
    episode.rewards = {"return": episode.reward}


def pays_in_parts(episode: Episode, draw: Random, strength: float) -> None:
    """Pay a right answer, and a part of it for a wrong one that is near."""
    episode.reward = 1.0 if episode.correct else round(0.3 * draw.random() ** 3, 2)
    episode.rewards = {"return": episode.reward}


def mixed_with_a_constant(episode: Episode, draw: Random, strength: float) -> None:
    """Pay the verdict and a judge in equal parts, where the judge always says the same."""
    episode.rewards = {**episode.rewards, "judge": strength}
    episode.reward = 0.5 * bool(episode.correct) + 0.5 * strength


def then(first: int, before: Plays, after: Plays) -> Plays:
    """A change of the episodes of a step and those that follow, and another of those before."""

    def plays(episodes: list[Episode], draw: Random, strength: float) -> None:
        (after if step_of(episodes[0]) >= first else before)(episodes, draw, strength)

    return plays


def of_every_second(change: Plays, each: int = 2) -> Plays:
    """A change in every second step, or in another part of the steps."""

    def plays(episodes: list[Episode], draw: Random, strength: float) -> None:
        if step_of(episodes[0]) % each == 0:
            change(episodes, draw, strength)

    return plays


def of_tasks(change: Callable[[Episode, Random], None], *tasks: str) -> Plays:
    """A change of the episodes of some kinds of problems."""
    return of_each(lambda episode, draw, strength: change(episode, draw) if episode.task in tasks else None)


def injects_silently(episode: Episode, draw: Random, strength: float) -> None:
    """Calls with injected faults that look like the policy's own, at the rate of the wrapper."""
    for turn in episode.steps:
        statuses = turn.statuses or [ToolStatus.TIMEOUT for _ in turn.info["tool_calls"]]
        turn.statuses = [ToolStatus.TIMEOUT if draw.random() < strength else one for one in statuses]
        for record, status in zip(turn.info["tool_calls"], turn.statuses, strict=True):
            record.update(status=str(status), error_type=str(status) if status.is_error else None, injected=False)
    episode.statuses, episode.injected = [status for turn in episode.steps for status in turn.statuses], []


def with_blanks(episode: Episode, draw: Random, strength: float) -> None:
    """Write every second problem in lower case, with a line break at its end, as another export of the data does."""
    if int(episode.problem_id[-4:]) % 2:
        asks(episode, lambda text: text.lower() + " \n")


def renamed(text: Callable[[str], str]) -> Callable[[Episode, Random, float], None]:
    """A held-out problem under a name of the training data."""

    def change(episode: Episode, draw: Random, strength: float) -> None:
        if episode.problem_id.startswith("held-"):
            episode.problem_id = episode.problem_id.replace("held-made", "train")
            asks(episode, text)

    return change


def attempts(episode: Episode, draw: Random) -> None:
    """A policy that begins again and again, and counts."""
    again = "".join(f"\nAttempt {number}: the value is still not a whole number, try again." for number in range(2, 60))
    says(lambda text: text + again)(episode, draw)


def lengths(since: int, factor: Callable[[int], float], share: float = 1.0, **more: Any) -> Mapping[str, Any]:
    """Answers of other lengths, by the number of the faulty step, and rollouts that take as much longer."""
    seconds = figure(ROLLOUT, lambda age, much: 1 + share * (factor(age) - 1))
    return {"since": since, "plays": times(lambda step: factor(step - since + 1), share), "figures": seconds, **more}


def takes(by: Callable[[int, float], float], name: str, more: Callable[[int, float], float]) -> Figures:
    """Rollouts that take longer, and the figure that says why."""
    return slower(by, figure(name, more, 0.25), 0.12)


def linear(age: int, much: float) -> float:
    """A factor that grows by the strength in each step, up to 6."""
    return min(6.0, 1 + much * age)


def powers(age: int, much: float) -> float:
    """The powers of the strength, from 1/50 to 25."""
    return min(25.0, max(0.02, much**age))


def products(age: int, much: float) -> float:
    """The multiples of the strength."""
    return much * age


def up_to_most(age: int, much: float) -> float:
    """The multiples of the strength, up to 3/4."""
    return min(0.75, much * age)


def roots(age: int, much: float) -> float:
    """The strength times the root of the number of steps, as of what wanders."""
    return much * math.sqrt(age)


def every_second(age: int, much: float) -> float:
    """The strength, and twice as much in every second step."""
    return much * (1 + age % 2)


def three_of_four(age: int, much: float) -> float:
    """The strength, and 1 in every fourth step."""
    return much if age % 4 else 1.0


def temperatures(training: float) -> Callable[[float], Mapping[str, Any]]:
    """Options of a run, with the strength as the temperature of evaluations."""
    return lambda much: {"rollout": {"temperature": training}, "eval": {"temperature": much}}


def level(first: float, last: float) -> Figures:
    """A level of the curriculum that rises every third step up to the last one."""
    return lambda age, much: {"sampler/level": min(last, first + age // 3)}


def leak(first: float, period: int) -> Figures:
    """Memory that a cache fills and gives back in part, with what is never given back."""
    return figure(MEMORY, lambda age, much: first + 0.4 * (age % period) / period + much * age, 0.01)


BROAD, SQUARE, LARGE = {"size": 8}, {"size": 6, "problems_per_step": 6}, {"problems_per_step": 10, "problems": 200}
EVALS: Mapping[str, Any] = {"problems": 400, "eval_every": 4}
RISES, FALLS = rule(tenfold, KL), rule(tenfold, ENTROPY)
S = ToolStatus
ENGINE_WAIT, TOOL = "*seconds/engine_wait", "*seconds/tool"
WORDS = "\\boxed{4} so the answer is \\boxed{4}. "

BLIND_FOLDERS = folder_variants(
    {
        "no episode can be played": (
            ("maxrl", 32011, 1.0, {"since": 3, "plays": of_a_share(down("OSError: no space left on device"))}, 1),
            ("sapo", 32012, 1.0, {"since": 1, "steps": 6, "processes": 2}, 1),
            ("dr_grpo", 32013, 1.0, {"since": 21, "plays": until(23, whole_groups(unavailable)), "made": BROAD}, 1),
        ),
        "the selector rejects all": (
            ("dr_grpo", 32021, 1.0, {"since": 4, "made": {"refill": 2}}, 1),
            ("gspo", 32022, 1.0, {"since": 15, "made": SQUARE}, 1),
            ("opo", 32023, 1.0, {"since": 1, "steps": 7, "processes": 4}, 1),
        ),
        "the format alone is paid": (
            ("dapo", 32031, 0.0, {"since": 4, "plays": of_each(pays_one_mark)}, rule(paid_alone)),
            ("maxrl", 32032, 0.0, {"since": 9, "plays": of_each(pays(0.0, -1.0)), "made": BROAD}, rule(paid_alone)),
            ("sapo", 32033, 0.0, {"since": 16, "plays": of_each(pays_style)}, rule(paid_alone)),
        ),
        "an exploit is paid": (
            ("opo", 32041, 3.0, {"since": 15, "plays": of_each(pays_a_hedge), "made": EVALS}, rule(exploited)),
            (
                "rloo",
                32042,
                4.0,
                {"since": 11, "plays": of_each(pays_length(11)), "made": {"eval_every": 3}, "steps": 30},
                rule(exploited),
            ),
            (
                "maxrl",
                32043,
                2.6,
                {
                    "since": 18,
                    "plays": of_each(pays_weak_tests),
                    "made": {"problems": 320, "eval_every": 2},
                    "steps": 32,
                },
                rule(exploited),
            ),
        ),
        "the policy forgets": (
            ("dapo", 32051, 2.0, {"since": 17, "made": EVALS, "steps": 32}, rule(fallen)),
            ("cispo", 32052, 3.5, {"since": 14, "made": {"eval_every": 7, "size": 3}, "steps": 30}, rule(fallen)),
            ("reinforce_pp", 32053, 6.0, {"since": 9, "made": {"eval_every": 3, "slope": 2.0}}, rule(fallen)),
        ),
        "KL runs away": (
            ("reinforce_pp", 32061, 1.6, {"since": 7, "steps": 24, "figures": figure("*kl", powers, 0.25)}, RISES),
            ("prorl", 32062, 0.4, {"since": 15, "figures": figure(KL, roots, 0.2)}, RISES),
            ("gmpo", 32063, 1.0, {"since": 12, "figures": figure(KL, every_second, 0.2)}, RISES),
        ),
        "entropy collapses": (
            ("opo", 32071, 0.7, {"since": 6, "steps": 30, "figures": figure("*policy/entropy", powers, 0.1)}, FALLS),
            ("cispo", 32072, 0.007, {"since": 13, "figures": figure(ENTROPY, every_second)}, FALLS),
            ("maxrl", 32073, 0.006, {"since": 2, "figures": figure(ENTROPY, constant, 0.3)}, FALLS),
        ),
        "entropy explodes": (
            ("opo", 32081, 1.5, {"since": 9, "steps": 30, "figures": figure("*policy/entropy", powers)}, FALLS),
            ("reinforce_pp", 32082, 3.5, {"since": 6, "figures": figure(ENTROPY, constant, 0.2)}, FALLS),
            ("sapo", 32083, 0.4, {"since": 12, "steps": 32, "figures": figure(ENTROPY, products, 0.1)}, FALLS),
        ),
        "weights never arrive": (
            ("rloo", 32091, 0.002, {"since": 2, "figures": figure(MISMATCH, products, 0.2)}, 5),
            ("maxrl", 32092, 0.015, {"since": 11, "figures": figure(MISMATCH, roots, 0.1)}, 8),
            (
                "dr_grpo",
                32093,
                0.004,
                {"since": 14, "figures": figure(MISMATCH, lambda age, much: much * age**1.3, 0.2)},
                5,
            ),
        ),
        "lag beyond its bound": (
            (
                "sapo",
                32101,
                2.0,
                {"since": 6, "options": lagging(1), "figures": figure("policy/lag", constant, 0.1)},
                rule(lags, 1),
            ),
            (
                "gmpo",
                32102,
                0.8,
                {
                    "since": 10,
                    "options": lagging(2),
                    "figures": figure("policy/lag", lambda age, much: min(4.0, much * age), 0.02),
                },
                rule(lags, 2),
            ),
            ("reinforce_pp", 32103, 0.3, {"since": 15, "options": lagging(0)}, rule(lags, 0)),
        ),
        "the end of a turn does not train": (
            ("sapo", 32111, 0.65, {"since": 3}, 1),
            ("maxrl", 32112, 0.3, {"since": 9, "processes": 2}, 1),
            ("reinforce_pp", 32113, 0.0, {"since": 1, "steps": 9}, 1),
        ),
        "a template of another model": (
            (
                "opo",
                32121,
                0.5,
                {"since": 1, "plays": of_a_share(says(lambda text: f"{text}<|end|>\n<|assistant|>\n"))},
                1,
            ),
            (
                "sapo",
                32122,
                0.7,
                {
                    "since": 1,
                    "plays": of_a_share(
                        says(lambda text: f"{text}<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>")
                    ),
                },
                1,
            ),
            (
                "maxrl",
                32123,
                0.9,
                {"since": 12, "plays": of_a_share(says(lambda text: f"[INST] <<SYS>>\n{text} [/INST]"))},
                1,
            ),
        ),
        "prompts are cut": (
            ("sapo", 32131, 0.06, {"since": 8}, 6),
            ("maxrl", 32132, 0.3, {"since": 2, "made": SQUARE}, 1),
            ("cispo", 32133, 0.6, {"since": 16}, 1),
        ),
        "answers are cut by turns": (
            (
                "sapo",
                32141,
                1.0,
                {"since": 5, "plays": more_and_more(ends("turns"), 5, 0.09, 0.9)},
                rule(a_third, "turns"),
            ),
            ("maxrl", 32142, 1.0, {"since": 1, "plays": of_tasks(ends("turns"), "digits", "products")}, 1),
            ("rloo", 32143, 0.5, {"since": 18, "made": BROAD}, 1),
        ),
        "answers are cut by time": (
            ("sapo", 32151, 0.5, {"since": 9, "plays": whole_groups(ends("time")), "made": SQUARE}, 1),
            ("dr_grpo", 32152, 0.8, {"since": 4, "plays": of_every_second(of_a_share(ends("time")))}, 1),
            ("opo", 32153, 0.4, {"since": 17}, 1),
        ),
        "answers explode": (
            ("opo", 32161, 1.0, lengths(8, lambda age: 12.0, 0.3, made=BROAD), rule(threefold)),
            ("sapo", 32162, 1.0, lengths(12, lambda age: min(8.0, 1 + 0.4 * age), steps=30), rule(threefold)),
            ("reinforce_pp", 32163, 1.0, lengths(6, lambda age: 2.0 if age <= 5 else 4.5, steps=24), rule(threefold)),
        ),
        "answers collapse": (
            ("sapo", 32171, 1.0, lengths(7, lambda age: 0.1, 0.9, made=BROAD), rule(threefold)),
            ("maxrl", 32172, 1.0, lengths(14, lambda age: max(0.1, 0.8**age), steps=32), rule(threefold)),
            ("dapo", 32173, 1.0, lengths(10, lambda age: 0.7 if age <= 4 else 0.18), rule(threefold)),
        ),
        "the policy repeats itself": (
            ("sapo", 32181, 0.7, {"since": 6, "plays": of_a_share(attempts)}, 1),
            ("reinforce_pp", 32182, 0.45, {"since": 12, "plays": of_a_share(says(lambda text: text + WORDS * 40))}, 1),
            ("grpo", 32183, 0.9, {"since": 1, "plays": of_a_share(says(lambda text: text + "\nx = x + 1" * 80))}, 1),
        ),
        "the tool is no longer called": (
            ("opo", 32191, 1.0, {"since": 5, "made": BROAD}, rule(unused)),
            (
                "luspo",
                32192,
                1.0,
                {"since": 10, "plays": more_and_more(calls_no_tool, 10, 0.34), "processes": 2},
                rule(unused),
            ),
            ("dapo", 32193, 0.98, {"since": 15, "plays": of_a_share(calls_no_tool)}, rule(unused)),
        ),
        "every call fails": (
            ("gspo", 32201, 1.0, {"since": 6, "plays": of_a_share(call_status(S.MEMORY))}, 1),
            ("maxrl", 32202, 1.0, {"since": 13, "plays": of_a_share(call_status(S.UNKNOWN_TOOL))}, 1),
            (
                "sapo",
                32203,
                0.98,
                {"since": 2, "plays": of_a_share(call_status(S.TIMEOUT, S.OUTPUT_LIMIT, S.MEMORY))},
                1,
            ),
        ),
        "one status dominates": (
            ("opo", 32211, 0.65, {"since": 7, "plays": of_a_share(call_status(S.INVALID_ARGUMENTS))}, 1),
            ("maxrl", 32212, 0.8, {"since": 14, "plays": of_a_share(call_status(S.UNKNOWN_TOOL)), "made": BROAD}, 1),
            (
                "sapo",
                32213,
                0.85,
                {"since": 4, "plays": more_and_more(call_status(S.TIMEOUT), 4, 0.12, 0.85)},
                rule(dominates, S.TIMEOUT),
            ),
        ),
        "the sandbox is unavailable": (
            (
                "maxrl",
                32221,
                0.12,
                {"since": 8, "plays": of_a_share(down("DockerException: cannot start the container"))},
                3,
            ),
            ("sapo", 32222, 0.7, {"since": 3, "plays": of_every_second(of_a_share(unavailable)), "steps": 20}, 2),
            ("grpo_clip_higher", 32223, 0.3, {"since": 19, "made": SQUARE}, 1),
        ),
        "injected faults have no label": (
            ("opo", 32231, 0.08, {"plays": of_each(injects_silently)}, 3),
            ("sapo", 32232, 0.2, {"plays": of_each(injects_silently), "made": BROAD}, 1),
            ("maxrl", 32233, 0.35, {"plays": of_each(injects_silently), "processes": 2}, 1),
        ),
        "the verifier runs out of time": (
            ("maxrl", 32241, 0.2, {"since": 5}, 2),
            ("opo", 32242, 1.0, {"since": 11, "plays": of_each(slow_tasks("products"))}, 2),
            ("sapo", 32243, 1.0, {"since": 8, "plays": more_and_more(slow_verdict, 8, 0.1, 0.9)}, rule(verdicts_late)),
        ),
        "the judge is constant": (
            ("sapo", 32251, 3.0, {"since": 7, "plays": of_each(scored("style"))}, 1),
            ("maxrl", 32252, 0.0, {"since": 1, "plays": then(10, of_each(judged_with_noise), of_each(judged))}, 10),
            ("luspo", 32253, 0.8, {"since": 3, "plays": of_each(mixed_with_a_constant), "made": SQUARE}, 1),
        ),
        "problems are duplicates": (
            ("maxrl", 32261, 0.2, {"made": {"problems": 60, "problems_per_step": 6}, "steps": 20}, 10),
            ("sapo", 32262, 0.3, {"made": {"problems": 100, "problems_per_step": 5}, "steps": 28}, 20),
            ("dr_grpo", 32263, 0.5, {"plays": of_each(with_blanks), "steps": 20}, 10),
        ),
        "held-out problems are trained on": (
            ("sapo", 32271, 0.15, {"since": 6}, 5),
            ("maxrl", 32272, 0.3, {"since": 11, "plays": of_each(renamed(str)), "made": SQUARE}, 2),
            ("cispo", 32273, 0.7, {"since": 2, "plays": of_each(renamed(lambda text: text.upper() + "\n"))}, 2),
        ),
        "groups have the same seeds": (
            ("maxrl", 32281, 1.0, {"since": 3, "made": BROAD}, 1),
            ("sapo", 32282, 1.0, {"since": 10, "processes": 4, "made": LARGE}, 1),
            ("dapo", 32283, 1.0, {"since": 21, "made": {"size": 3}}, 1),
        ),
        "the sampler is stuck": (
            ("maxrl", 32291, 4.0, {"since": 9, "made": {"problems_per_step": 6, "problems": 180}}, 5),
            ("sapo", 32292, 10.0, {"since": 3, "made": LARGE}, 5),
            ("luspo", 32293, 1.0, {"since": 18, "made": {"problems": 160}}, 5),
        ),
        "the curriculum does not move": (
            ("sapo", 32301, 3.0, {"figures": level(1.0, 1.0), "made": {"problems_per_step": 6}}, 20),
            ("dr_grpo", 32302, 4.5, {"figures": level(2.0, 4.0), "steps": 36}, 26),
            ("maxrl", 32303, 7.0, {"since": 5, "figures": level(3.0, 3.0)}, 20),
        ),
        "evaluations are greedier": (
            ("maxrl", 32311, 0.7, {"options": temperatures(1.0)}, 1),
            ("sapo", 32312, 0.0, {"options": temperatures(1.1)}, 1),
            ("cispo", 32313, 0.1, {"options": temperatures(0.7)}, 1),
        ),
        "the optimizer is lost at a resume": (
            ("sapo", 32321, 1.0, {"since": 6}, 1),
            ("maxrl", 32322, 1.0, {"since": 14, "processes": 4, "made": BROAD}, 1),
            ("dr_grpo", 32323, 1.0, {"since": 29}, 1),
        ),
        "the cache is too small": (
            ("maxrl", 32331, 2.3, {"since": 9, "figures": takes(constant, PREEMPTIONS, lambda age, much: 60.0)}, 5),
            (
                "sapo",
                32332,
                1.09,
                {"since": 8, "steps": 34, "figures": takes(powers, PREEMPTIONS, lambda age, much: 1.5 * age)},
                9,
            ),
            (
                "cispo",
                32333,
                4.0,
                {"since": 15, "figures": takes(three_of_four, PREEMPTIONS, lambda age, much: 20.0)},
                6,
            ),
        ),
        "one server is slow": (
            ("opo", 32341, 2.4, {"since": 6, "figures": takes(constant, ENGINE_WAIT, lambda age, much: 8.0)}, 5),
            (
                "maxrl",
                32342,
                0.25,
                {"since": 13, "steps": 30, "figures": takes(linear, ENGINE_WAIT, lambda age, much: 1 + 2 * age)},
                5,
            ),
            (
                "luspo",
                32343,
                5.0,
                {"since": 9, "figures": takes(three_of_four, ENGINE_WAIT, lambda age, much: 15.0)},
                6,
            ),
        ),
        "the sandbox has a queue": (
            ("sapo", 32351, 2.5, {"since": 8, "figures": takes(constant, TOOL, lambda age, much: 8.0)}, 5),
            (
                "maxrl",
                32352,
                0.14,
                {"since": 10, "steps": 32, "figures": takes(linear, TOOL, lambda age, much: 1 + 0.9 * age)},
                8,
            ),
            (
                "gspo",
                32353,
                3.5,
                {"since": 18, "figures": takes(constant, TOOL, lambda age, much: 12.0), "made": SQUARE},
                5,
            ),
        ),
        "a process waits for another": (
            ("maxrl", 32361, 0.45, {"since": 7, "figures": figure(WAITING, constant, 0.1)}, 5),
            (
                "sapo",
                32362,
                0.07,
                {"since": 12, "processes": 8, "steps": 32, "figures": figure(WAITING, up_to_most, 0.04)},
                rule(waits),
            ),
            (
                "grpo_clip_higher",
                32363,
                0.45,
                {"since": 4, "processes": 4, "figures": figure(WAITING, every_second, 0.05)},
                5,
            ),
        ),
        "memory grows by half": (
            (
                "maxrl",
                32371,
                1.035,
                {"steps": 36, "figures": figure(MEMORY, lambda age, much: 4 * much**age, 0.01)},
                rule(grown),
            ),
            ("sapo", 32372, 0.14, {"steps": 40, "figures": leak(4.0, 5)}, rule(grown)),
            (
                "reinforce_pp",
                32373,
                0.9,
                {"since": 7, "steps": 40, "figures": figure(MEMORY, lambda age, much: 6.0 + much * (age // 5), 0.005)},
                rule(grown),
            ),
        ),
    }
)
"""Three variants of each fault, by its name."""


def warm_up(age: int, much: float) -> Mapping[str, float]:
    """A rate that rises for ten steps, with the changes that come of it."""
    share = min(1.0, age / 10)
    return {"learning_rate": 1e-6 * share, "weights/change": 2e-5 * share * noisy(0.2, age)}


def with_evaluations(age: int, much: float) -> float:
    """Memory that fills at first, and is larger in every sixth step."""
    return 3.0 + 1.2 * (1 - math.exp(-age / 2)) + 0.8 * (age % 6 == 0)


CLEAN_FOLDERS: tuple[Blind, ...] = (
    clean_folder("maxrl", 32901, 8),
    clean_folder("rloo", 32902, 48, made={"eval_every": 24}),
    clean_folder("dapo", 32903, 26, made={"size": 3, "problems_per_step": 3}),
    clean_folder("grpo", 32904, 34, made={"slope": 0.7, "problems": 200}),
    clean_folder("sapo", 32905, 28, figures=warm_up),
    clean_folder("dr_grpo", 32906, 30, check="optimizer_lost", since=11, processes=4),
    clean_folder("gspo", 32907, 26, plays=of_each(pays_in_parts)),
    clean_folder("opo", 32908, 30, figures=figure(ROLLOUT, lambda age, much: 3.0 if age in (9, 21) else 1.0, 0.25)),
    clean_folder("luspo", 32909, **{**lengths(1, lambda age: 1 + 0.3 * math.sin(age / 3)), "made": LARGE}),
    clean_folder(
        "cispo",
        32910,
        30,
        options=lagging(4),
        figures=several(
            figure("policy/lag", lambda age, much: 2.0, 0.2), figure(MISMATCH, lambda age, much: 6e-3, 0.3)
        ),
    ),
    clean_folder("prorl", 32911, 36, figures=figure(KL, lambda age, much: 0.15 * (1 - math.exp(-age / 12)), 0.25)),
    clean_folder(
        "gmpo", 32912, 36, figures=figure(ENTROPY, lambda age, much: 0.2 + 0.4 * math.exp(-age / 9), 0.12), made=BROAD
    ),
    clean_folder("reinforce_pp", 32913, 40, figures=figure(MEMORY, with_evaluations, 0.02)),
    clean_folder("lite_ppo", 32914, 28, 0.07, plays=of_a_share(ends("turns")), made={"slips": (0.45, 0.25)}),
    clean_folder(
        "grpo_clip_higher",
        32915,
        30,
        0.08,
        processes=8,
        options=wrappers,
        plays=of_each(injects),
        figures=figure(WAITING, lambda age, much: 0.2, 0.25),
    ),
)
"""Runs without a fault: a short and a long one, small groups, hard problems, warm-up, a resume, costs that vary."""
