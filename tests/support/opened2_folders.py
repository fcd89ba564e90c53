"""The half ``opened2`` of the recorded folders: faults, and runs without a fault.

Written without knowledge of the thresholds, except that of ``lag_beyond_bound``; checks were corrected after the first
measurement. When a fault can be seen follows from what was planted, and for some faults from the run that it made:

- An exact cause (an option, a mask, a lag, an identical group, a constant score, a step in which nothing trains): in
  the first faulty step.
- A share of the episodes or calls: in the first step by which 10 of them are expected to show it. A share that grows:
  in the first step in which a third of the episodes shows it.
- A reward for the format alone: when 10 right and 10 wrong episodes with the format were paid, and 10 without it.
- A figure that runs away: in the third step in a row in which it is 10 times as large, or as small, as before. The
  length of answers: 3 times. A tool that is not used: in the third step in a row in which at most 1 of 20 episodes
  calls it.
- A constant cost (throughput, waiting): after 5 steps; a cost that grows: when it is expected to have doubled, and at
  the earliest after 5 steps. Waiting that grows: in the fifth step in a row in which it takes 40 % of the time.
- A difference that grows with each update: after 5 steps.
- A success that falls: in the first evaluation that is 3 standard errors below the best one.
- Problems that come again: when one pass over the data is complete. Problems that are held out: when a run without the
  fault would have shown none with a probability below .05. A sampler that draws few problems: after 5 steps.
- A change that is missing for ever: after 20 steps. Memory: when it has grown by half, after at least 10 steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean

from blind import Blind, clean_folder, folder_variants, rule
from opened_folders import (
    calls_no_tool,
    fallen,
    figure,
    injects,
    lagging,
    noisy,
    several,
    tenfold,
)
from planted_folders import (
    Figures,
    Plays,
    call_status,
    ends,
    judged,
    longer,
    of_a_share,
    of_each,
    says,
    slow_verdict,
    unavailable,
    wrappers,
)

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData


def step_of(episode: Episode) -> int:
    """The step for which an episode is played."""
    return episode.policy_version + 1


def faulty(run: RunRecord, since: int) -> list[StepData]:
    """The faulty steps of a run."""
    return [step for step in run.steps if step.number >= since]


def third_in_a_row(shows: Callable[[StepData], bool], steps: Sequence[StepData], length: int = 3) -> int:
    """The third step in a row, or of another length, that shows something."""
    row = 0
    for step in steps:
        row = row + 1 if shows(step) else 0
        if row == length:
            return step.number
    return 0


def paid_alone(since: int, run: RunRecord) -> int:
    """The step by which 10 right and 10 wrong episodes with the format were paid, and 10 without it."""
    counts = [0, 0, 0]
    for step in faulty(run, since):
        for one in step.episodes:
            if one.available:
                counts[2 if one.tags < 1 else int(bool(one.correct))] += 1
        if min(counts) >= 10:
            return step.number
    return 0


def a_third(end: str, since: int, run: RunRecord) -> int:
    """The first step in which a third of the episodes has an end."""
    return third_in_a_row(
        lambda step: sum(one.end == end for one in step.episodes) >= len(step.episodes) / 3, faulty(run, since), 1
    )


def threefold(since: int, run: RunRecord) -> int:
    """The third step in a row in which answers are 3 times as long, or as short, as before the fault."""
    before = fmean(_length(step) for step in run.steps if since - 3 <= step.number < since)
    return third_in_a_row(lambda step: not before / 3 < _length(step) < 3 * before, faulty(run, since))


def _length(step: StepData) -> float:
    return fmean(one.tokens for one in step.episodes if one.available)


def unused(since: int, run: RunRecord) -> int:
    """The third step in a row in which at most 1 of 20 episodes calls a tool."""

    def shows(step: StepData) -> bool:
        return sum(map(calls, step.episodes)) <= len(step.episodes) / 20

    return third_in_a_row(shows, faulty(run, since))


def calls(episode: EpisodeDigest) -> bool:
    """Whether the episode called a tool."""
    return bool(episode.statuses or episode.injected)


def waits(since: int, run: RunRecord) -> int:
    """The fifth step in a row in which waiting takes 40 % of the time."""
    return third_in_a_row(lambda step: step.figures.get(WAITING, 0.0) >= 0.4, faulty(run, since), 5)


def pays(marked: float, unmarked: float, right: float = 0.0) -> Callable[[Episode, Random, float], None]:
    """Pay an answer with any number of marks, and next to nothing for a right one."""

    def change(episode: Episode, draw: Random, strength: float) -> None:
        episode.reward = (marked if episode.answer_tags > 0 else unmarked) + right * bool(episode.correct)
        episode.rewards = {"return": episode.reward}

    return change


def pays_more_and_more(episode: Episode, draw: Random, strength: float) -> None:
    """Pay a trick that the policy uses in more and more wrong episodes."""
    found = draw.random() < min(0.95, 0.5 + 0.05 * max(0, step_of(episode) - 12))
    episode.reward = float(bool(episode.correct) or found)
    episode.rewards = {"return": episode.reward}


def pays_a_bonus(episode: Episode, draw: Random, strength: float) -> None:
    """Pay a score that any long answer gets, whether it is right or wrong."""
    episode.reward = round(0.9 + 0.1 * draw.random(), 3)
    episode.rewards = {"return": episode.reward}


def bonus_for_format(episode: Episode, draw: Random, strength: float) -> None:
    """Pay a right answer, and a little more for a mark."""
    episode.reward = float(bool(episode.correct)) + 0.1 * (episode.answer_tags == 1)
    episode.rewards = {"return": episode.reward}


def times(factor: Callable[[int], float], share: float = 1.0) -> Plays:
    """Multiply the length of a share of the answers, by a factor that depends on the step."""

    def change(episode: Episode, draw: Random) -> None:
        longer(episode, draw, factor(step_of(episode)))

    return lambda episodes, draw, strength: of_a_share(change)(episodes, draw, share)


def more_and_more(change: Callable[[Episode, Random], None], since: int, each: float, most: float = 1.0) -> Plays:
    """A change of a share of the episodes, which grows with each step."""

    def plays(episodes: list[Episode], draw: Random, strength: float) -> None:
        of_a_share(change)(episodes, draw, min(most, each * (step_of(episodes[0]) - since + 1)))

    return plays


def until(last: int, change: Plays) -> Plays:
    """A change that ends after a step."""

    def plays(episodes: list[Episode], draw: Random, strength: float) -> None:
        if step_of(episodes[0]) <= last:
            change(episodes, draw, strength)

    return plays


def whole_groups(change: Callable[[Episode, Random], None]) -> Plays:
    """A change of a share of the groups; the strength is the share."""

    def plays(episodes: list[Episode], draw: Random, strength: float) -> None:
        if draw.random() < strength:
            for episode in episodes:
                change(episode, draw)

    return plays


def with_turns(least: int, change: Callable[[Episode, Random], None]) -> Plays:
    """A change of the episodes that have so many turns."""

    def plays(episodes: list[Episode], draw: Random, strength: float) -> None:
        for episode in episodes:
            if episode.turns >= least:
                change(episode, draw)

    return plays


def no_worker(episode: Episode, draw: Random) -> None:
    """An episode for which the pool has no worker."""
    episode.void("unavailable", "TimeoutError: no worker of the pool was free within 120 s")


def slow_tasks(*tasks: str) -> Callable[[Episode, Random, float], None]:
    """A verifier that runs out of time on some kinds of problems."""

    def change(episode: Episode, draw: Random, strength: float) -> None:
        if episode.task in tasks:
            slow_verdict(episode, draw)

    return change


def scored(name: str) -> Callable[[Episode, Random, float], None]:
    """A component that gives every episode the same score."""

    def change(episode: Episode, draw: Random, strength: float) -> None:
        episode.rewards = {**episode.rewards, name: strength}
        episode.reward += strength

    return change


def asks(episode: Episode, text: Callable[[str], str]) -> None:
    """Change the first message of the user."""
    at = next(at for at, one in enumerate(episode.messages) if one.role == "user")
    episode.messages = list(episode.messages)
    episode.messages[at] = replace(episode.messages[at], content=text(episode.messages[at].content))


def spelled_otherwise(episode: Episode, draw: Random, strength: float) -> None:
    """Write the problems with an odd number with other white space and capitals."""
    if int(episode.problem_id[-4:]) % 2:
        asks(episode, lambda text: text.upper().replace(" ", "  "))


def under_another_name(episode: Episode, draw: Random, strength: float) -> None:
    """Give a held-out problem a name and white space of its own."""
    if episode.problem_id.startswith("held-"):
        episode.problem_id = f"web-{episode.problem_id[-4:]}"
        asks(episode, lambda text: text.replace("Problem: ", "Problem:\n\n") + "\n")


def every_second(name: str, high: float, low: float) -> Figures:
    """A figure that is high in every second faulty step, from the first one on."""
    return lambda age, much: {name: high if age % 2 else low}


def stairs(age: int, much: float) -> float:
    """Memory that grows with every fourth step, as with every evaluation."""
    return 3.0 + much * (age // 4)


MANY, WIDE = {"problems_per_step": 6, "problems": 90}, {"size": 6}
LONG = 34
HELD = {"problems": 240, "eval_every": 3}
AGAIN = (
    "\nWait, I should check this again. The number that I found does not look right, because the last digit must be "
    "even, and so I start from the beginning, write down what is given, and look for the step that I have missed."
)
ENTROPY, KL = "policy/entropy", "kl"
MISMATCH, ROLLOUT = "mismatch/logp_difference", "*seconds/rollout"
WAITING, MEMORY = "seconds/share_waiting", "memory/process_gib"
PREEMPTIONS = "engine/preemptions"


def slower(by: Callable[[int, float], float], more: Figures, spread: float = 0.1) -> Figures:
    """Rollouts that take longer, and another figure that says why."""
    return several(figure(ROLLOUT, by, spread), more)


def constant(age: int, much: float) -> float:
    """The strength."""
    return much


OPENED2_FOLDERS = folder_variants(
    {
        "no episode can be played": (
            ("opo", 21011, 1.0, {"since": 5, "plays": of_a_share(no_worker)}, 1),
            ("grpo_clip_higher", 21012, 1.0, {"since": 2, "made": MANY, "steps": 12}, 1),
            ("reinforce_pp", 21013, 1.0, {"since": 16, "plays": until(19, of_a_share(no_worker))}, 1),
        ),
        "the selector rejects all": (
            ("rloo", 21021, 1.0, {"since": 2, "steps": 10}, 1),
            ("grpo", 21022, 1.0, {"since": 6, "made": {"refill": 0}}, 1),
            ("luspo", 21023, 1.0, {"since": 22, "made": {"refill": 3, **WIDE}}, 1),
        ),
        "the format alone is paid": (
            ("opo", 21031, 0.0, {"since": 6, "plays": of_each(pays(1.0, 0.0))}, rule(paid_alone)),
            ("gspo", 21032, 0.0, {"since": 11, "plays": of_each(pays(0.5, -0.5, 0.01))}, rule(paid_alone)),
            ("rloo", 21033, 0.0, {"since": 1, "plays": of_each(pays(0.3, 0.1)), "made": MANY}, rule(paid_alone)),
        ),
        "an exploit is paid": (
            (
                "dr_grpo",
                21041,
                3.5,
                {"since": 14, "plays": of_each(pays_more_and_more), "made": HELD, "steps": LONG},
                rule(fallen),
            ),
            ("cispo", 21042, 2.2, {"since": 17, "plays": of_each(pays_a_bonus), "steps": LONG}, rule(fallen)),
            (
                "gspo",
                21043,
                4.5,
                {"since": 12, "plays": of_each(pays_a_bonus), "made": {"eval_every": 6}, "steps": 30},
                rule(fallen),
            ),
        ),
        "the policy forgets": (
            ("grpo", 21051, 2.2, {"since": 20, "made": HELD, "steps": LONG}, rule(fallen)),
            ("opo", 21052, 2.8, {"since": 13, "made": {"problems": 320, "eval_every": 6}, "steps": 32}, rule(fallen)),
            ("rloo", 21053, 4.0, {"since": 16, "made": WIDE}, rule(fallen)),
        ),
        "KL runs away": (
            (
                "dr_grpo",
                21061,
                0.15,
                {"since": 9, "figures": figure(KL, lambda age, much: much * age, 0.1)},
                rule(tenfold, KL),
            ),
            (
                "grpo",
                21062,
                0.002,
                {"since": 7, "steps": 30, "figures": figure(KL, lambda age, much: much * age**3)},
                rule(tenfold, KL),
            ),
            (
                "mopps",
                21063,
                3.0,
                {"since": 17, "figures": figure(KL, lambda age, much: much * (1 - math.exp(-age / 4)), 0.15)},
                rule(tenfold, KL),
            ),
        ),
        "entropy collapses": (
            (
                "rloo",
                21071,
                0.008,
                {
                    "since": 10,
                    "steps": LONG,
                    "figures": figure(ENTROPY, lambda age, much: max(much, 0.2 * (1 - age / 10))),
                },
                rule(tenfold, ENTROPY),
            ),
            ("gspo", 21072, 0.004, {"since": 4, "figures": figure(ENTROPY, constant, 0.2)}, rule(tenfold, ENTROPY)),
            (
                "grpo_clip_higher",
                21073,
                0.2,
                {"since": 15, "steps": 32, "figures": figure(ENTROPY, lambda age, much: much / age**2)},
                rule(tenfold, ENTROPY),
            ),
        ),
        "entropy explodes": (
            (
                "dapo",
                21081,
                1.5,
                {"since": 7, "steps": 30, "figures": figure(ENTROPY, lambda age, much: min(5.0, 0.2 * much**age))},
                rule(tenfold, ENTROPY),
            ),
            ("opo", 21082, 3.5, {"since": 11, "figures": figure(ENTROPY, constant, 0.2)}, rule(tenfold, ENTROPY)),
            (
                "cispo",
                21083,
                0.4,
                {"since": 14, "steps": 34, "figures": figure(ENTROPY, lambda age, much: min(4.0, 0.2 + much * age))},
                rule(tenfold, ENTROPY),
            ),
        ),
        "weights never arrive": (
            (
                "rloo",
                21091,
                0.15,
                {"since": 10, "figures": figure(MISMATCH, lambda age, much: much * (1 - math.exp(-age / 6)), 0.1)},
                5,
            ),
            ("opo", 21092, 0.03, {"since": 14, "figures": figure(MISMATCH, lambda age, much: much * age**0.5, 0.1)}, 5),
            ("dr_grpo", 21093, 0.012, {"since": 5, "figures": figure(MISMATCH, lambda age, much: much * age, 0.2)}, 5),
        ),
        "lag beyond its bound": (
            ("gspo", 21101, 4.0, {"since": 8, "options": lagging(3)}, 1),
            ("grpo", 21102, 0.5, {"since": 3, "options": lagging(0)}, 1),
            (
                "dapo",
                21103,
                4.0,
                {"since": 14, "options": lagging(2), "figures": every_second("policy/lag", 4.0, 0.0)},
                1,
            ),
        ),
        "the end of a turn does not train": (
            ("rloo", 21111, 0.55, {"since": 5}, 1),
            ("gspo", 21112, 0.15, {"since": 1, "steps": 12}, 1),
            ("opo", 21113, 0.0, {"since": 20}, 1),
        ),
        "a template of another model": (
            (
                "gspo",
                21121,
                0.5,
                {
                    "since": 1,
                    "plays": of_a_share(says(lambda text: f"<|start|>assistant<|channel|>final<|message|>{text}")),
                },
                1,
            ),
            ("dapo", 21122, 0.8, {"since": 1, "plays": of_a_share(says(lambda text: f"<｜Assistant｜>{text}"))}, 1),
            ("cispo", 21123, 0.35, {"since": 7, "plays": of_a_share(says(lambda text: f"{text}\n<|user|>\n"))}, 1),
        ),
        "prompts are cut": (
            ("rloo", 21131, 0.12, {"since": 6}, 3),
            ("opo", 21132, 0.4, {"since": 14}, 1),
            ("grpo_clip_higher", 21133, 0.8, {"since": 1}, 1),
        ),
        "answers are cut by turns": (
            ("opo", 21141, 1.0, {"since": 6, "plays": with_turns(3, ends("turns"))}, 1),
            ("dr_grpo", 21142, 0.45, {"since": 13, "made": MANY}, 1),
            ("gspo", 21143, 0.8, {"since": 1, "steps": 12}, 1),
        ),
        "answers are cut by time": (
            ("grpo", 21151, 1.0, {"since": 12, "plays": with_turns(3, ends("time"))}, 1),
            (
                "gspo",
                21152,
                1.0,
                {"since": 6, "plays": more_and_more(ends("time"), 6, 0.1, 0.8)},
                rule(a_third, "time"),
            ),
            ("rloo", 21153, 0.45, {"since": 1, "made": MANY, "steps": 14}, 1),
        ),
        "answers explode": (
            ("rloo", 21161, 4.0, {"since": 10, "made": MANY}, rule(threefold)),
            (
                "dapo",
                21162,
                1.0,
                {
                    "since": 8,
                    "plays": times(lambda step: min(9.0, 1.35 ** (step - 7))),
                    "figures": figure(ROLLOUT, lambda age, much: min(9.0, 1.35**age)),
                    "steps": 30,
                },
                rule(threefold),
            ),
            (
                "gspo",
                21163,
                5.0,
                {"since": 13, "plays": times(lambda step: 9.0, 0.5), "made": WIDE},
                rule(threefold),
            ),
        ),
        "answers collapse": (
            ("opo", 21171, 0.2, {"since": 8, "made": MANY}, rule(threefold)),
            (
                "grpo",
                21172,
                1.0,
                {
                    "since": 11,
                    "plays": times(lambda step: max(0.08, 0.75 ** (step - 10))),
                    "figures": figure(ROLLOUT, lambda age, much: max(0.08, 0.75**age)),
                    "steps": 30,
                },
                rule(threefold),
            ),
            ("dr_grpo", 21173, 0.15, {"since": 17, "plays": times(lambda step: 0.04, 0.9)}, rule(threefold)),
        ),
        "the policy repeats itself": (
            (
                "cispo",
                21181,
                0.5,
                {"since": 9, "plays": of_a_share(says(lambda text: text + "所以答案是四。" * 90))},
                1,
            ),
            ("opo", 21182, 0.8, {"since": 1, "plays": of_a_share(says(lambda text: text + AGAIN * 5))}, 1),
            ("dr_grpo", 21183, 0.6, {"since": 15, "plays": of_a_share(says(lambda text: text * 6))}, 1),
        ),
        "the tool is no longer called": (
            ("rloo", 21191, 1.0, {"since": 6}, rule(unused)),
            ("gspo", 21192, 1.0, {"since": 11, "plays": more_and_more(calls_no_tool, 11, 0.2)}, rule(unused)),
            ("grpo", 21193, 0.99, {"since": 16, "plays": of_a_share(calls_no_tool), "made": MANY}, rule(unused)),
        ),
        "every call fails": (
            ("dr_grpo", 21201, 1.0, {"since": 4, "plays": of_a_share(call_status(ToolStatus.SYNTAX_ERROR))}, 1),
            ("opo", 21202, 1.0, {"since": 17, "plays": of_a_share(call_status(ToolStatus.BLOCKED))}, 1),
            (
                "cispo",
                21203,
                0.99,
                {
                    "since": 11,
                    "plays": of_a_share(
                        call_status(ToolStatus.UNKNOWN_TOOL, ToolStatus.INVALID_ARGUMENTS, ToolStatus.EXCEPTION)
                    ),
                },
                1,
            ),
        ),
        "one status dominates": (
            ("rloo", 21211, 0.7, {"since": 5, "plays": of_a_share(call_status(ToolStatus.EXCEPTION))}, 1),
            ("dapo", 21212, 0.85, {"since": 12, "plays": of_a_share(call_status(ToolStatus.SYNTAX_ERROR))}, 1),
            ("gspo", 21213, 0.6, {"since": 1, "plays": of_a_share(call_status(ToolStatus.OUTPUT_LIMIT))}, 1),
        ),
        "the sandbox is unavailable": (
            ("rloo", 21221, 0.2, {"since": 5, "plays": of_a_share(no_worker)}, 2),
            ("dapo", 21222, 0.5, {"since": 12, "plays": whole_groups(unavailable)}, 2),
            ("opo", 21223, 0.8, {"since": 1, "made": MANY, "steps": 14}, 1),
        ),
        "injected faults have no label": (
            ("grpo", 21231, 0.15, {"made": WIDE}, 1),
            ("gspo", 21232, 0.4, {}, 1),
            ("opo", 21233, 0.2, {"made": {"slips": (0.1, 0.02)}}, 1),
        ),
        "the verifier runs out of time": (
            ("rloo", 21241, 0.15, {"since": 9}, 3),
            ("cispo", 21242, 1.0, {"since": 4, "plays": of_each(slow_tasks("primes", "digits"))}, 1),
            ("gspo", 21243, 0.5, {"since": 13, "made": MANY}, 1),
        ),
        "the judge is constant": (
            ("gspo", 21251, 0.5, {"since": 6, "plays": of_each(judged)}, 1),
            ("opo", 21252, 7.0, {"since": 1, "plays": of_each(scored("rubric"))}, 1),
            ("cispo", 21253, -1.0, {"since": 12, "plays": of_each(judged), "made": MANY}, 1),
        ),
        "problems are duplicates": (
            ("rloo", 21261, 0.35, {"made": {"problems": 60}, "steps": 24}, 15),
            ("gspo", 21262, 0.5, {"plays": of_each(spelled_otherwise), "steps": 20}, 10),
            ("opo", 21263, 0.8, {"made": MANY, "steps": 24}, 15),
        ),
        "held-out problems are trained on": (
            ("gspo", 21271, 0.2, {"since": 9}, 4),
            ("dapo", 21272, 0.45, {"since": 3, "plays": of_each(under_another_name)}, 2),
            ("opo", 21273, 0.8, {"since": 15, "plays": of_each(under_another_name), "made": MANY}, 1),
        ),
        "groups have the same seeds": (
            ("rloo", 21281, 1.0, {"since": 5, "made": MANY}, 1),
            ("dr_grpo", 21282, 1.0, {"since": 13, "processes": 8}, 1),
            ("opo", 21283, 1.0, {"since": 1, "processes": 4, "made": {"size": 2}, "steps": 14}, 1),
        ),
        "the sampler is stuck": (
            ("opo", 21291, 5.0, {"since": 6, "made": {"problems": 120}}, 5),
            ("gspo", 21292, 2.0, {"since": 14}, 5),
            ("cispo", 21293, 8.0, {"since": 1, "made": {"problems_per_step": 8, "problems": 200}}, 5),
        ),
        "the curriculum does not move": (
            ("rloo", 21301, 5.0, {"figures": lambda age, much: {"sampler/level": 0.0}}, 20),
            ("grpo", 21302, 8.0, {"figures": lambda age, much: {"sampler/level": 3.0}, "made": WIDE}, 20),
            ("opo", 21303, 6.0, {"made": MANY}, 20),
        ),
        "evaluations are greedier": (
            ("opo", 21311, 0.4, {}, 1),
            (
                "gspo",
                21312,
                0.3,
                {"options": lambda much: {"rollout": {"temperature": 0.9}, "eval": {"temperature": much}}},
                1,
            ),
            (
                "dr_grpo",
                21313,
                0.6,
                {"options": lambda much: {"rollout": {"temperature": 1.2}, "eval": {"temperature": much}}},
                1,
            ),
        ),
        "the optimizer is lost at a resume": (
            ("rloo", 21321, 1.0, {"since": 8}, 1),
            ("gspo", 21322, 1.0, {"since": 17, "processes": 2}, 1),
            ("opo", 21323, 1.0, {"since": 25, "made": MANY}, 1),
        ),
        "the cache is too small": (
            (
                "opo",
                21331,
                2.5,
                {"since": 7, "figures": slower(constant, figure(PREEMPTIONS, lambda age, much: 25.0, 0.2))},
                5,
            ),
            (
                "grpo",
                21332,
                1.12,
                {
                    "since": 11,
                    "steps": 30,
                    "figures": slower(
                        lambda age, much: min(6.0, much**age), figure(PREEMPTIONS, lambda age, much: 3.0 * age)
                    ),
                },
                7,
            ),
            (
                "dr_grpo",
                21333,
                4.0,
                {
                    "since": 14,
                    "figures": slower(
                        lambda age, much: much if age % 2 else much / 2, figure(PREEMPTIONS, lambda age, much: 8.0, 0.3)
                    ),
                },
                5,
            ),
        ),
        "one server is slow": (
            (
                "gspo",
                21341,
                2.5,
                {
                    "since": 7,
                    "figures": slower(constant, figure("*seconds/engine_wait", lambda age, much: 10.0, 0.3)),
                },
                5,
            ),
            (
                "rloo",
                21342,
                0.2,
                {
                    "since": 11,
                    "steps": 30,
                    "figures": slower(
                        lambda age, much: min(5.0, 1 + much * age),
                        figure("*seconds/engine_wait", lambda age, much: 1 + 3 * much * age),
                    ),
                },
                5,
            ),
            (
                "opo",
                21343,
                8.0,
                {
                    "since": 19,
                    "figures": slower(constant, figure("*seconds/engine_wait", lambda age, much: 40.0, 0.3), 0.2),
                },
                5,
            ),
        ),
        "the sandbox has a queue": (
            (
                "rloo",
                21351,
                2.8,
                {"since": 6, "figures": slower(constant, figure("*seconds/tool", lambda age, much: 3 * much, 0.1))},
                5,
            ),
            (
                "dapo",
                21352,
                1.15,
                {
                    "since": 13,
                    "steps": 32,
                    "figures": slower(
                        lambda age, much: min(6.0, much**age),
                        figure("*seconds/tool", lambda age, much: min(15.0, 1.35**age)),
                    ),
                },
                5,
            ),
            (
                "opo",
                21353,
                4.5,
                {
                    "since": 10,
                    "figures": slower(constant, figure("*seconds/tool", lambda age, much: 3 * much, 0.3), 0.3),
                    "made": MANY,
                },
                5,
            ),
        ),
        "a process waits for another": (
            ("dr_grpo", 21361, 0.5, {"since": 5, "figures": figure(WAITING, constant, 0.1)}, 5),
            (
                "opo",
                21362,
                0.1,
                {
                    "since": 10,
                    "processes": 4,
                    "steps": 30,
                    "figures": figure(WAITING, lambda age, much: min(0.85, much * age)),
                },
                rule(waits),
            ),
            ("cispo", 21363, 0.7, {"since": 13, "processes": 8}, 5),
        ),
        "memory grows by half": (
            (
                "gspo",
                21371,
                0.06,
                {
                    "since": 11,
                    "steps": LONG,
                    "figures": figure(f"*{MEMORY}", lambda age, much: 1 + much * age, 0.01),
                },
                10,
            ),
            ("opo", 21372, 0.5, {"figures": figure(MEMORY, stairs, 0.005), "steps": 30}, 12),
            (
                "dr_grpo",
                21373,
                0.3,
                {"figures": figure(MEMORY, lambda age, much: 12.0 + much * age, 0.01), "steps": 40},
                20,
            ),
        ),
    }
)
"""Three variants of each fault, by its name."""


def sawtooth(age: int, much: float) -> float:
    """Memory that a cache fills and that is given back after every tenth step."""
    return 2.0 + 0.06 * (age % 10)


def one_failure(episode: Episode, draw: Random) -> None:
    """A sandbox that rarely fails."""
    if draw.random() < 0.01:
        no_worker(episode, draw)


CLEAN_OPENED2_FOLDERS: tuple[Blind, ...] = (
    clean_folder("grpo", 21901, 40),
    clean_folder("rloo", 21902, 30, made={"eval_every": 3}),
    clean_folder("dr_grpo", 21903, made={"size": 8, "problems_per_step": 6}),
    clean_folder(
        "gspo", 21904, 36, figures=figure(ENTROPY, lambda age, much: max(0.12, 0.4 - 0.012 * age), 0.1), since=1
    ),
    clean_folder("cispo", 21905, 30, figures=figure(ENTROPY, lambda age, much: 0.2 + 0.007 * age, 0.1)),
    clean_folder("grpo_roc", 21906, 26, 0.3, plays=of_a_share(calls_no_tool)),
    clean_folder(
        "dapo",
        21907,
        32,
        plays=times(lambda step: 1 + 0.03 * step),
        figures=figure(ROLLOUT, lambda age, much: 1 + 0.03 * age, 0.1),
    ),
    clean_folder("gmpo", 21908, 40, figures=figure(KL, lambda age, much: 0.08 * (1 - math.exp(-age / 8)), 0.2)),
    clean_folder("opo", 21909, figures=figure(ROLLOUT, lambda age, much: 2.5 if age == 15 else 1.0, 0.1)),
    clean_folder("reinforce_pp", 21910, 44, figures=figure(MEMORY, sawtooth, 0.01)),
    clean_folder("lite_ppo", 21911, processes=2, figures=figure(WAITING, lambda age, much: 0.22, 0.2)),
    clean_folder("maxrl", 21912, 30, options=lagging(3), figures=lambda age, much: {"policy/lag": noisy(0.2, age)}),
    clean_folder("grpo_tcr", 21913, 26, 0.15, options=wrappers, plays=of_each(injects)),
    clean_folder("sapo", 21914, 30, plays=of_each(bonus_for_format)),
    clean_folder(
        "grpo_clip_higher", 21915, 32, check="optimizer_lost", since=20, plays=of_a_share(one_failure), processes=2
    ),
)
"""Runs without a fault: long ones, other sizes, slow drifts that settle, a resume, labelled faults, rare failures."""
