"""The half ``opened`` of the recorded folders: faults, and runs without a fault.

Written without knowledge of the thresholds; checks were corrected after the first measurement. When a fault can be
seen follows from what was planted:

- An exact cause (an option, a mask, a lag, an identical group, a constant score, a step in which nothing trains): in
  the first faulty step.
- A share of the episodes: when at least 10 episodes are expected to show it.
- A figure that runs away: in the third step in a row in which it is 10 times as large, or as small, as before.
- A constant cost (throughput, waiting): after 5 steps; a cost that grows: when it is expected to have doubled.
- A success that falls: in the first evaluation that is 3 standard errors below the best one.
- Problems that come again, or are held out: when one pass over the data is complete, or a run without the fault would
  have shown none with a probability below .05. A sampler that draws few problems: after 5 steps.
- A change that is missing for ever: after 20 steps. Memory: when it has grown by half, after at least 10 steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from statistics import fmean
from typing import Any

from blind import Blind, clean_folder, folder_variants, rule
from planted_folders import (
    Figures,
    call_status,
    calls_nothing,
    longer,
    of_a_share,
    of_each,
    says,
    unavailable,
    wrappers,
)

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.record import RunRecord


def tenfold(name: str, since: int, run: RunRecord) -> int:
    """The third step in a row in which a figure is 10 times as large or as small as before the fault."""
    found = run.series(name)
    before = fmean([value for step, value in found if step < since][-3:])
    row = 0
    for step, value in found:
        row = row + 1 if step >= since and not before / 10 < value < 10 * before else 0
        if row == 3:
            return step
    return 0


def fallen(since: int, run: RunRecord) -> int:
    """The first evaluation since the fault that is 3 standard errors below the best one."""
    errors, best = dict(run.series("eval/pass_rate_se")), 0.0
    for step, value in run.series("eval/pass_rate"):
        if step >= since and value < best - 3 * errors[step]:
            return step
        best = max(best, value)
    return 0


def noisy(spread: float, age: int, *more: object) -> float:
    """A factor around 1, the same whenever it is asked for."""
    return math.exp(Random(f"{age}/{more}").gauss(0, spread))


def figure(name: str, value: Callable[[int, float], float], spread: float = 0.05) -> Figures:
    """A figure that the fault changes, with noise; a name with ``*`` multiplies the figure's own value."""
    return lambda age, much: {name: value(age, much) * noisy(spread, age, name, much)}


def several(*each: Figures) -> Figures:
    """Several figures that the fault changes."""
    return lambda age, much: {name: value for one in each for name, value in one(age, much).items()}


def pays_marks(right: float, without: float) -> Callable[[Episode, Random, float], None]:
    """Pay any marked answer; ``right`` is added for a right one, and ``without`` is paid without a mark."""

    def change(episode: Episode, draw: Random, strength: float) -> None:
        episode.reward = (1.0 if episode.answer_tags == 1 else without) + right * bool(episode.correct)
        episode.rewards = {"return": episode.reward}

    return change


def pays_often(episode: Episode, draw: Random, strength: float) -> None:
    """Pay a trick that most episodes use, whether they are right or wrong."""
    episode.reward = float(draw.random() < 0.97)
    episode.rewards = {"return": episode.reward}


def judged_with_noise(episode: Episode, draw: Random, strength: float) -> None:
    """A judge that mostly agrees with the verdict."""
    score = round((0.7 if episode.correct else 0.2) + 0.2 * draw.random(), 2)
    episode.rewards = {**episode.rewards, "judge": score}
    episode.reward += score


def injects(episode: Episode, draw: Random, strength: float) -> None:
    """Calls with injected faults, which carry their label."""
    for turn in episode.steps:
        injected = [status for status in turn.statuses if draw.random() < strength]
        turn.statuses = turn.statuses[len(injected) :]
        for record in turn.info["tool_calls"][: len(injected)]:
            record.update(status=str(ToolStatus.TIMEOUT), error_type=str(ToolStatus.TIMEOUT), injected=True)
        episode.injected += [ToolStatus.TIMEOUT for _ in injected]
    episode.statuses = [status for turn in episode.steps for status in turn.statuses]


def calls_no_tool(episode: Episode, draw: Random) -> None:
    """A policy that answers without the tool."""
    calls_nothing(episode, draw, 1.0)


def loops(*texts: str) -> Callable[[Episode, Random], None]:
    """A policy that ends in one of the texts, again and again."""

    def change(episode: Episode, draw: Random) -> None:
        chosen = draw.choice(texts)
        says(lambda text: text + chosen * (600 // len(chosen)))(episode, draw)

    return change


def option(name: str, value: Any) -> Callable[[float], Mapping[str, Any]]:
    """Options with one of them set, as GROUP.NAME."""
    group, _, field = name.partition(".")
    return lambda strength: {group: {field: value}}


def lagging(bound: int) -> Callable[[float], Mapping[str, Any]]:
    """Options of a run whose weights may lag."""
    return lambda much: {"optim": {"minibatches": 1}, "rollout": {"max_staleness": bound}}


LARGE = {"problems_per_step": 8, "problems": 80}
WIDE = {"size": 8}
LONG = 34
ROUND = "First I look at the numbers, then I multiply them, and then I see that this was not what was asked. "
KL, ENTROPY = rule(tenfold, "kl"), rule(tenfold, "policy/entropy")
MISMATCH = "mismatch/logp_difference"
WAITING, MEMORY = "seconds/share_waiting", "memory/process_gib"

OPENED_FOLDERS = folder_variants(
    {
        "no episode can be played": (
            ("grpo_roc", 611, 1.0, {"since": 7}, 1),
            ("rloo", 612, 1.0, {"since": 1, "steps": 8}, 1),
            ("gspo", 613, 1.0, {"since": 20, "made": LARGE}, 1),
        ),
        "the selector rejects all": (
            ("dapo", 621, 1.0, {"since": 3}, 1),
            ("grpo_roc", 622, 1.0, {"since": 10, "made": WIDE}, 1),
            ("cispo", 623, 1.0, {"since": 18, "made": LARGE}, 1),
        ),
        "the format alone is paid": (
            ("grpo", 631, 0.0, {"since": 1, "plays": of_each(pays_marks(0.0, 0.0))}, 2),
            ("dr_grpo", 632, 0.0, {"since": 8, "plays": of_each(pays_marks(0.02, -1.0)), "made": LARGE}, 2),
            ("gmpo", 633, 0.0, {"since": 14, "plays": of_each(pays_marks(0.05, 0.0)), "made": WIDE}, 2),
        ),
        "an exploit is paid": (
            ("grpo", 641, 2.0, {"since": 19, "plays": of_each(pays_often), "steps": LONG}, rule(fallen)),
            ("rloo", 642, 3.0, {"since": 13, "plays": of_each(pays_often), "made": WIDE}, rule(fallen)),
            (
                "grpo_roc",
                643,
                5.0,
                {"since": 17, "plays": of_each(pays_often), "made": {"eval_every": 2}},
                rule(fallen),
            ),
        ),
        "the policy forgets": (
            ("dr_grpo", 651, 1.8, {"since": 19, "steps": LONG}, rule(fallen)),
            ("grpo_roc", 652, 3.0, {"since": 15, "made": {"eval_every": 5}, "steps": LONG}, rule(fallen)),
            ("gspo", 653, 5.0, {"since": 11, "made": {"eval_every": 2, "slope": 1.5}}, rule(fallen)),
        ),
        "KL runs away": (
            (
                "grpo",
                661,
                0.35,
                {"since": 10, "steps": 30, "figures": figure("kl", lambda age, much: 0.02 * math.exp(much * age))},
                KL,
            ),
            (
                "reinforce_pp",
                662,
                0.3,
                {"since": 6, "figures": figure("kl", lambda age, much: much * age, 0.2)},
                KL,
            ),
            ("prorl", 663, 5.0, {"since": 16, "figures": figure("kl", lambda age, much: much, 0.1)}, KL),
        ),
        "entropy collapses": (
            (
                "grpo",
                671,
                0.3,
                {
                    "since": 8,
                    "steps": LONG,
                    "figures": figure("policy/entropy", lambda age, much: 0.2 * math.exp(-much * age)),
                },
                ENTROPY,
            ),
            ("dr_grpo", 672, 0.01, {"since": 1}, 3),
            (
                "dapo",
                673,
                0.5,
                {"since": 14, "figures": figure("policy/entropy", lambda age, much: 0.18 * much**age)},
                ENTROPY,
            ),
        ),
        "entropy explodes": (
            (
                "grpo",
                681,
                0.3,
                {
                    "since": 8,
                    "steps": LONG,
                    "figures": figure("policy/entropy", lambda age, much: min(6.0, 0.2 * math.exp(much * age))),
                },
                ENTROPY,
            ),
            ("gspo", 682, 2.5, {"since": 15}, ENTROPY),
            ("rloo", 683, 6.0, {"since": 5}, ENTROPY),
        ),
        "weights never arrive": (
            ("grpo", 691, 0.004, {"since": 1, "figures": figure(MISMATCH, lambda age, much: much * age, 0.2)}, 5),
            (
                "gspo",
                692,
                0.02,
                {"since": 8, "figures": figure(MISMATCH, lambda age, much: much * age**0.7, 0.2)},
                5,
            ),
            ("cispo", 693, 0.008, {"since": 16, "figures": figure(MISMATCH, lambda age, much: much * age, 0.1)}, 5),
        ),
        "lag beyond its bound": (
            ("grpo", 701, 1.0, {"since": 5, "options": lagging(0)}, 1),
            ("rloo", 702, 3.0, {"since": 12, "options": lagging(1)}, 1),
            ("grpo_roc", 703, 6.0, {"since": 1, "options": lagging(2)}, 1),
        ),
        "the end of a turn does not train": (
            ("gmpo", 711, 0.0, {"since": 1}, 1),
            ("grpo", 712, 0.4, {"since": 10}, 1),
            ("dapo", 713, 0.75, {"since": 1}, 1),
        ),
        "a template of another model": (
            (
                "grpo",
                721,
                0.35,
                {"since": 1, "plays": of_a_share(says(lambda text: f"{text}<|eot_id|><|start_header_id|>user"))},
                1,
            ),
            (
                "rloo",
                722,
                0.6,
                {"since": 1, "plays": of_a_share(says(lambda text: f"{text}<end_of_turn>\n<start_of_turn>user\n"))},
                1,
            ),
            ("dr_grpo", 723, 1.0, {"since": 9, "plays": of_a_share(says(lambda text: f"{text}</s>[INST] "))}, 1),
        ),
        "prompts are cut": (
            ("grpo", 731, 0.08, {"since": 1}, 4),
            ("dapo", 732, 0.25, {"since": 11}, 2),
            ("gspo", 733, 1.0, {"since": 4}, 1),
        ),
        "answers are cut by turns": (
            ("grpo_roc", 741, 0.35, {"since": 10}, 1),
            ("cispo", 742, 0.6, {"since": 1, "made": LARGE}, 1),
            ("grpo", 743, 0.95, {"since": 17}, 1),
        ),
        "answers are cut by time": (
            ("rloo", 751, 0.35, {"since": 8}, 1),
            ("grpo_roc", 752, 0.6, {"since": 14, "made": WIDE}, 1),
            ("dapo", 753, 0.95, {"since": 1}, 1),
        ),
        "answers explode": (
            ("grpo", 761, 3.5, {"since": 9, "plays": of_each(longer)}, 3),
            ("dr_grpo", 762, 6.0, {"since": 15, "made": LARGE}, 3),
            ("gmpo", 763, 12.0, {"since": 6, "made": WIDE}, 3),
        ),
        "answers collapse": (
            ("luspo", 771, 0.25, {"since": 9}, 3),
            ("grpo_roc", 772, 0.12, {"since": 15, "made": LARGE}, 3),
            ("rloo", 773, 0.06, {"since": 6, "made": WIDE}, 3),
        ),
        "the policy repeats itself": (
            ("grpo", 781, 0.4, {"since": 7, "plays": of_a_share(loops("\nThe answer is 4."))}, 1),
            ("gspo", 782, 0.7, {"since": 13, "plays": of_a_share(loops("ha", "0", ") "))}, 1),
            ("rloo", 783, 1.0, {"since": 10, "plays": of_a_share(loops(ROUND))}, 1),
        ),
        "the tool is no longer called": (
            ("dr_grpo", 791, 0.97, {"since": 8, "plays": of_a_share(calls_no_tool)}, 3),
            ("grpo_roc", 792, 1.0, {"since": 14, "plays": of_a_share(calls_no_tool), "made": LARGE}, 3),
            ("opo", 793, 0.99, {"since": 18, "plays": of_a_share(calls_no_tool), "made": WIDE}, 3),
        ),
        "every call fails": (
            ("grpo", 801, 1.0, {"since": 9, "plays": of_a_share(call_status(ToolStatus.TIMEOUT))}, 1),
            ("grpo_roc", 802, 1.0, {"since": 1, "plays": of_a_share(call_status(ToolStatus.EXCEPTION))}, 1),
            (
                "rloo",
                803,
                0.96,
                {"since": 14, "plays": of_a_share(call_status(ToolStatus.MALFORMED, ToolStatus.MEMORY))},
                1,
            ),
        ),
        "one status dominates": (
            ("cispo", 811, 0.65, {"since": 9, "plays": of_a_share(call_status(ToolStatus.TIMEOUT))}, 1),
            ("grpo_roc", 812, 0.75, {"since": 15, "plays": of_a_share(call_status(ToolStatus.MALFORMED))}, 1),
            ("grpo", 813, 0.9, {"since": 3, "plays": of_a_share(call_status(ToolStatus.MEMORY))}, 1),
        ),
        "the sandbox is unavailable": (
            ("grpo", 821, 0.15, {"since": 10}, 3),
            ("gspo", 822, 0.35, {"since": 1}, 1),
            ("grpo_roc", 823, 0.6, {"since": 17, "made": LARGE}, 1),
        ),
        "injected faults have no label": (
            ("grpo_roc", 831, 0.1, {}, 2),
            ("rloo", 832, 0.3, {}, 1),
            ("dapo", 833, 0.5, {"made": LARGE}, 1),
        ),
        "the verifier runs out of time": (
            ("grpo", 841, 0.12, {"since": 7}, 4),
            ("lite_ppo", 842, 0.35, {"since": 1}, 1),
            ("grpo_roc", 843, 0.7, {"since": 15}, 1),
        ),
        "the judge is constant": (
            ("rloo", 851, 0.0, {"since": 1}, 1),
            ("grpo", 852, 1.0, {"since": 9}, 1),
            ("dr_grpo", 853, -0.5, {"since": 14, "made": WIDE}, 1),
        ),
        "problems are duplicates": (
            ("grpo", 861, 0.25, {"steps": 20}, 10),
            ("grpo_roc", 862, 0.4, {"made": {"problems_per_step": 8}}, 5),
            ("dapo", 863, 0.6, {"made": {"problems": 80}, "steps": 30}, 20),
        ),
        "held-out problems are trained on": (
            ("rloo", 871, 0.1, {"since": 5}, 8),
            ("grpo", 872, 0.3, {"since": 1}, 3),
            ("grpo_roc", 873, 0.6, {"since": 13, "made": LARGE}, 1),
        ),
        "groups have the same seeds": (
            ("gspo", 881, 1.0, {"since": 1}, 1),
            ("grpo", 882, 1.0, {"since": 9, "made": LARGE}, 1),
            ("grpo_roc", 883, 1.0, {"since": 17, "processes": 4}, 1),
        ),
        "the sampler is stuck": (
            ("grpo", 891, 6.0, {"since": 11}, 5),
            ("rloo", 892, 3.0, {"since": 1}, 5),
            ("dr_grpo", 893, 1.0, {"since": 16, "made": {"problems": 120}}, 5),
        ),
        "the curriculum does not move": (
            ("grpo", 901, 4.0, {}, 20),
            ("gmpo", 902, 6.0, {"figures": lambda age, much: {"sampler/level": 2.0}}, 20),
            ("rloo", 903, 9.0, {"made": LARGE}, 20),
        ),
        "evaluations are greedier": (
            ("grpo", 911, 0.6, {}, 1),
            ("rloo", 912, 0.2, {}, 1),
            (
                "grpo_roc",
                913,
                0.0,
                {"options": lambda much: {"rollout": {"temperature": 0.8}, "eval": {"temperature": much}}},
                1,
            ),
        ),
        "the optimizer is lost at a resume": (
            ("grpo", 921, 1.0, {"since": 5}, 1),
            ("cispo", 922, 1.0, {"since": 21}, 1),
            ("grpo_roc", 923, 1.0, {"since": 13, "made": LARGE}, 1),
        ),
        "the cache is too small": (
            (
                "grpo",
                931,
                2.2,
                {
                    "since": 10,
                    "figures": several(
                        figure("*seconds/rollout", lambda age, much: much),
                        figure("engine/preemptions", lambda age, much: 12.0),
                    ),
                },
                5,
            ),
            (
                "rloo",
                932,
                0.12,
                {
                    "since": 8,
                    "figures": several(
                        figure("*seconds/rollout", lambda age, much: 1 + much * age),
                        figure("engine/preemptions", lambda age, much: 2.0 * age),
                    ),
                },
                9,
            ),
            (
                "gspo",
                933,
                5.0,
                {
                    "since": 15,
                    "figures": several(
                        figure("*seconds/rollout", lambda age, much: much, 0.2),
                        figure("engine/preemptions", lambda age, much: 40.0, 0.2),
                    ),
                },
                5,
            ),
        ),
        "one server is slow": (
            (
                "dr_grpo",
                941,
                2.2,
                {
                    "since": 10,
                    "figures": several(
                        figure("*seconds/rollout", lambda age, much: much),
                        figure("*seconds/engine_wait", lambda age, much: 12.0),
                    ),
                },
                5,
            ),
            ("grpo_roc", 942, 3.5, {"since": 6}, 5),
            ("dapo", 943, 6.0, {"since": 16, "made": LARGE}, 5),
        ),
        "the sandbox has a queue": (
            (
                "grpo_roc",
                951,
                2.2,
                {
                    "since": 9,
                    "figures": several(
                        figure("*seconds/rollout", lambda age, much: much),
                        figure("*seconds/tool", lambda age, much: 3 * much),
                    ),
                },
                5,
            ),
            (
                "grpo",
                952,
                0.15,
                {
                    "since": 12,
                    "figures": several(
                        figure("*seconds/rollout", lambda age, much: 1 + much * age),
                        figure("*seconds/tool", lambda age, much: 1 + 4 * much * age),
                    ),
                },
                7,
            ),
            ("cispo", 953, 6.0, {"since": 16}, 5),
        ),
        "a process waits for another": (
            ("grpo", 961, 0.4, {"since": 1, "figures": figure(WAITING, lambda age, much: much, 0.1)}, 5),
            ("gspo", 962, 0.55, {"since": 9, "processes": 4}, 5),
            ("rloo", 963, 0.9, {"since": 15}, 5),
        ),
        "memory grows by half": (
            (
                "grpo",
                971,
                0.25,
                {"figures": figure(MEMORY, lambda age, much: 2.0 + much * age, 0.01), "steps": 30},
                10,
            ),
            (
                "rloo",
                972,
                0.06,
                {"figures": figure(MEMORY, lambda age, much: 2.0 + much * age, 0.01), "steps": 40},
                17,
            ),
            (
                "dapo",
                973,
                0.15,
                {"figures": figure(MEMORY, lambda age, much: 9.0 + much * age, 0.005), "steps": 46},
                30,
            ),
        ),
    }
)
"""Three variants of each fault, by its name."""


CLEAN_OPENED_FOLDERS: tuple[Blind, ...] = (
    clean_folder("grpo_roc", 9001, 44),
    clean_folder("dapo", 9002, made={"problems_per_step": 8, "slope": 1.5}),
    clean_folder("grpo", 9003, 40, made={"slope": 0.6, "size": 8}),
    clean_folder(
        "gspo", 9005, 30, figures=figure("policy/entropy", lambda age, much: 0.12 + 0.2 * math.exp(-age / 15), 0.1)
    ),
    clean_folder("rloo", 9006, options=lagging(1), figures=figure("policy/lag", lambda age, much: 1.0, 0.0)),
    clean_folder("cispo", 9007, figures=figure(MISMATCH, lambda age, much: 0.012, 0.3)),
    clean_folder("reinforce_pp", 9008, 50, figures=figure("kl", lambda age, much: 0.003 * age, 0.3)),
    clean_folder("gmpo", 9009, 26, 1.6, since=16, plays=of_each(longer), made={"slope": 2.0}),
    clean_folder("grpo_roc", 9010, made={"slips": (0.45, 0.35)}),
    clean_folder("gspo", 9011, 26, 0.2, options=wrappers, plays=of_each(injects)),
    clean_folder("grpo", 9016, processes=2, figures=figure(WAITING, lambda age, much: 0.18, 0.3)),
    clean_folder("opo", 9012, 40, figures=figure(MEMORY, lambda age, much: 3.0 - 2.0 * math.exp(-age / 2), 0.02)),
    clean_folder("grpo_tcr", 9013, plays=of_each(judged_with_noise)),
    clean_folder("grpo_roc", 9014, check="optimizer_lost", since=14, options=option("eval.temperature", 1.0)),
    clean_folder(
        "lite_ppo",
        9015,
        figures=several(
            figure("*seconds/rollout", lambda age, much: 1 + 0.01 * age, 0.1),
            figure("clip/low", lambda age, much: 0.0),
            figure("clip/high", lambda age, much: 0.0),
        ),
        plays=of_a_share(lambda episode, draw: unavailable(episode, draw) if draw.random() < 0.02 else None),
    ),
)
"""Runs without a fault: slow and long ones, other sizes, lags and precisions, warm-ups, a resume, few failures."""
