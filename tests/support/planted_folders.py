"""Faults planted in recorded folders: the package's own writers, selectors and figures around episodes that are drawn.

A fault acts from its first step on and changes episodes before they are selected, or figures before they are written.
``visible`` was written down before the first measurement and uses no threshold of a check: the number of faulty steps
after which a person with the planted cause in hand can see it. 1: each faulty step shows it; 3: its mean over steps
does; 5 or more: only a trend, a share of rare draws or a missing change shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from made_episodes import Skill, made_episode
from made_runs import MadeRun, MadeTraining

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.trainers.samplers.base import Start

RECIPES = ("grpo_roc", "grpo", "dapo")
SINCE = 12
Plays = Callable[[list[Episode], Random, float], None]
Figures = Callable[[int, float], Mapping[str, float]]


@dataclass(frozen=True)
class PlantedFolder:
    """A fault of a recorded folder.

    Attributes:
        check: The check that must name it.
        strengths: The weakest and the strongest fault; what they mean depends on the fault.
        visible: Number of faulty steps after which it can be seen.
        plays: Changes the episodes of a group, given draws and the strength.
        figures: Figures of a faulty step, given its number among the faulty steps, from 1, and the strength; the value
            of ``*NAME`` multiplies the figure.
        since: First faulty step.
        steps: Steps of the run.
        processes: Number of processes that the run names.
        options: Options of the run, given the strength.
        made: Other attributes of the run.
    """

    check: str
    strengths: tuple[float, float] = (1.0, 1.0)
    visible: int = 1
    plays: Plays | None = None
    figures: Figures | None = None
    since: int = SINCE
    steps: int = 26
    processes: int = 1
    options: Callable[[float], Mapping[str, Any]] = lambda strength: {}
    made: Mapping[str, Any] = field(default_factory=dict)


class PlantedTraining(MadeTraining):
    """A made run with the figures of a trainer, and perhaps a fault."""

    def __init__(self, folder: Path, made: MadeRun, fault: PlantedFolder | None, strength: float) -> None:
        super().__init__(folder, made)
        self.fault, self.strength = fault, strength
        self.own_selector = self.selector
        self.own_sampler = self.sampler
        if fault is not None and fault.processes > 1:
            self.writer.begin(self.config, processes=fault.processes)

    def step(self, step: int) -> Any:
        """Play and write a step."""
        fault = self.fault
        if fault is not None and step == fault.since:
            if fault.check == "all_rejected":
                self.selector = RejectsAll()
            if fault.check == "sampler_stuck":
                self.sampler = Stuck(self.own_sampler, round(self.strength))
            if fault.check == "optimizer_lost":
                self.writer.begin(self.config, resumed=step - 1)
        return super().step(step)

    def played(self, start: Start, number: int, step: int, skill: Skill, rng: Random) -> list[Episode]:
        """The episodes of a group, with the fault."""
        fault, draw = self.fault, Random(f"{self.made.seed}/fault/{step}/{number}")
        if fault is None or step < fault.since:
            return super().played(start, number, step, skill, rng)
        if fault.check == "same_seeds":
            if number % 2 and self._twin is not None:
                return [replace(deepcopy(one), group=number) for one in self._twin]
            self._twin = super().played(start, number, step, skill, rng)
            return self._twin
        held = None
        if fault.check == "held_out_in_training" and draw.random() < self.strength:
            held = self.held[draw.randrange(len(self.held))]
        if fault.check in ("reward_exploited", "held_out_falls"):
            skill = self.weakened(step, skill)
        if fault.check == "curriculum_still":
            skill = replace(skill, right=self.strength)
        if held is None:
            episodes = super().played(start, number, step, skill, rng)
        else:
            size = 2 * self.made.size
            episodes = [made_episode(held, skill, rng, group=number, seed=start.seed) for _ in range(size)]
        if fault.plays is not None:
            fault.plays(episodes, draw, self.strength)
        return episodes

    _twin: list[Episode] | None = None

    def weakened(self, step: int, skill: Skill) -> Skill:
        """The skill of a policy that forgets more with each faulty step, up to the strength in log-odds."""
        assert self.fault is not None
        return replace(skill, right=skill.right - self.strength * min(1.0, (step - self.fault.since + 1) / 4))

    def evaluate(self, step: int) -> None:
        """Play the held-out problems, with the skill of the step."""
        fault, made = self.fault, self.made
        if fault is not None and fault.check in ("reward_exploited", "held_out_falls") and step >= fault.since:
            # An evaluation draws its skill from the slope.
            self.made = replace(made, slope=made.slope - self.strength)
        super().evaluate(step)
        self.made = made

    def measured(self, step: int, figures: dict[str, float], rng: Random) -> dict[str, float]:
        """The figures of a step, with those of a trainer and of the fault."""
        draw = Random(f"{self.made.seed}/figures/{step}")
        figures = figures | {
            "weights/change": 2e-5 * math.exp(draw.gauss(0, 0.2)),
            "optimizer/updates": float(step),
            "policy/lag": 0.0,
            "policy/entropy": figures["policy/entropy"] * math.exp(draw.gauss(0, 0.05)),
            "mismatch/logp_difference": 1e-5 * math.exp(draw.gauss(0, 0.3)),
            "clip/low": 1e-3 * draw.random(),
            "clip/high": 4e-3 * draw.random(),
            "kl": 0.01 + 0.001 * step * draw.random(),
            "mask/environment": 0.0,
            "mask/turn_ends": 1.0,
            "memory/process_gib": 2.0 + 0.05 * draw.random(),
            "seconds/share_waiting": 0.05 + 0.15 * draw.random(),
        }
        fault = self.fault
        if fault is None or fault.figures is None or step < fault.since:
            return figures
        changed = fault.figures(step - fault.since + 1, self.strength)
        times = {name[1:]: figures[name[1:]] * value for name, value in changed.items() if name.startswith("*")}
        return figures | times | {name: value for name, value in changed.items() if not name.startswith("*")}


class RejectsAll:
    """A selector that rejects every group."""

    def __call__(self, group: Any, keep: int, rng: Any) -> list[int]:
        """Choose nothing."""
        return []


class Stuck:
    """A sampler that draws a few problems only.

    Args:
        own: The sampler that it replaces.
        most: Number of problems that it draws.
    """

    def __init__(self, own: Any, most: int) -> None:
        self._first, self._drawn = own.draw(most), 0

    def draw(self, count: int) -> list[Start]:
        """Draw the next problems."""
        self._drawn += count
        return [self._first[(self._drawn + at) % len(self._first)] for at in range(count)]


def of_each(change: Callable[[Episode, Random, float], None]) -> Plays:
    """A change of every episode of a group."""

    def plays(episodes: list[Episode], draw: Random, strength: float) -> None:
        for episode in episodes:
            change(episode, draw, strength)

    return plays


def of_a_share(change: Callable[[Episode, Random], None]) -> Plays:
    """A change of a share of the episodes; the strength is the share."""

    def plays(episodes: list[Episode], draw: Random, strength: float) -> None:
        for episode in episodes:
            if draw.random() < strength:
                change(episode, draw)

    return plays


def says(text: Callable[[str], str]) -> Callable[[Episode, Random], None]:
    """A change of what the policy wrote."""

    def change(episode: Episode, draw: Random) -> None:
        episode.messages = [
            replace(one, content=text(one.content)) if one.role == "assistant" else one for one in episode.messages
        ]

    return change


def ends(end: str) -> Callable[[Episode, Random], None]:
    """Episodes that a budget cuts."""

    def change(episode: Episode, draw: Random) -> None:
        episode.end, episode.reward, episode.correct, episode.rewards = end, 0.0, False, {"return": 0.0}

    return change


def call_status(*chosen: ToolStatus) -> Callable[[Episode, Random], None]:
    """Calls that end with one of the statuses."""

    def change(episode: Episode, draw: Random) -> None:
        for turn in episode.steps:
            turn.statuses = [draw.choice(chosen) for _ in turn.statuses]
        episode.statuses = [status for turn in episode.steps for status in turn.statuses]

    return change


def pays_format(episode: Episode, draw: Random, strength: float) -> None:
    """Pay one marked answer, and next to nothing for a right one."""
    episode.reward = float(episode.answer_tags == 1) + strength * bool(episode.correct)
    episode.rewards = {"return": episode.reward}


def pays_exploit(episode: Episode, draw: Random, strength: float) -> None:
    """Pay a trick that almost every episode now uses."""
    episode.reward = float(draw.random() < 0.9)
    episode.rewards = {"return": episode.reward}


def longer(episode: Episode, draw: Random, strength: float) -> None:
    """An answer with another number of tokens."""
    for turn in episode.steps:
        turn.start, turn.stop = round(turn.start * strength), round(turn.stop * strength)
    episode.recorded_tokens = sum(turn.tokens for turn in episode.steps)


def calls_nothing(episode: Episode, draw: Random, strength: float) -> None:
    """A policy that answers without the tool."""
    episode.steps, episode.statuses, episode.injected = episode.steps[-1:], [], []
    episode.messages = [*episode.messages[:2], episode.messages[-1]]
    episode.turns = 1


def slow_verdict(episode: Episode, draw: Random) -> None:
    """A verifier that runs out of time."""
    if verdict := episode.steps[-1].info.get("verdict"):
        verdict["reason"], verdict["correct"] = "timeout", False
        episode.correct, episode.reward, episode.rewards = False, 0.0, {"return": 0.0}


def judged(episode: Episode, draw: Random, strength: float) -> None:
    """A judge that gives every episode the same score."""
    episode.rewards = {**episode.rewards, "judge": strength}
    episode.reward += strength


def unavailable(episode: Episode, draw: Random) -> None:
    """An episode whose sandbox does not answer."""
    episode.void("unavailable", "ConnectionError: the sandbox did not answer within 60 s")


def forgets_label(episode: Episode, draw: Random, strength: float) -> None:
    """An injected fault that counts as the policy's own error."""
    episode.statuses, episode.injected = episode.statuses + episode.injected, []


def slower(age: int, strength: float) -> Mapping[str, float]:
    """The time of a rollout in proportion to the tokens."""
    return {"*seconds/rollout": strength}


def wrappers(strength: float) -> Mapping[str, Any]:
    """Options that inject faults; the made episodes carry no label of them."""
    return {"rollout": {"wrappers": [f"fault_injection:rate={strength:.3f}"]}}


FLAT = {"slope": 0.0}
EVALUATED = {"problems": 160, "eval_every": 4}
FOLDERS: dict[str, PlantedFolder] = {
    "no episode can be played": PlantedFolder("all_unavailable", (1.0, 1.0), plays=of_a_share(unavailable)),
    "the selector rejects all": PlantedFolder("all_rejected"),
    "the format alone is paid": PlantedFolder("reward_pays_format", (0.0, 0.03), 3, of_each(pays_format)),
    "an exploit is paid": PlantedFolder(
        "reward_exploited", (2.5, 4.0), 8, of_each(pays_exploit), made=EVALUATED, steps=28
    ),
    "the policy forgets": PlantedFolder("held_out_falls", (2.5, 4.0), 8, made=EVALUATED, steps=28),
    "KL runs away": PlantedFolder("kl_runs_away", (0.1, 0.5), 4, figures=lambda age, much: {"kl": much * age**1.5}),
    "entropy collapses": PlantedFolder(
        "entropy_collapsed", (0.03, 0.005), 3, figures=lambda age, much: {"policy/entropy": much}
    ),
    "entropy explodes": PlantedFolder(
        "entropy_exploded", (1.6, 4.0), 3, figures=lambda age, much: {"policy/entropy": much}
    ),
    "weights never arrive": PlantedFolder(
        "weights_stale", (0.01, 0.03), 5, figures=lambda age, much: {"mismatch/logp_difference": much * age}
    ),
    "lag beyond its bound": PlantedFolder(
        "lag_beyond_bound",
        (1.0, 4.0),
        figures=lambda age, much: {"policy/lag": much},
        options=lambda much: {"optim": {"minibatches": 1}},
    ),
    "the end of a turn does not train": PlantedFolder(
        "turn_end_untrained", (0.3, 0.0), figures=lambda age, much: {"mask/turn_ends": much}
    ),
    "a template of another model": PlantedFolder(
        "template_wrong", (0.4, 1.0), plays=of_a_share(says(lambda text: f"{text}<|im_start|>user"))
    ),
    "prompts are cut": PlantedFolder("prompts_cut", (0.15, 0.6), figures=lambda age, much: {"prompt/cut": much}),
    "answers are cut by turns": PlantedFolder("cut_by_turns", (0.5, 0.9), plays=of_a_share(ends("turns"))),
    "answers are cut by time": PlantedFolder("cut_by_time", (0.5, 0.9), plays=of_a_share(ends("time"))),
    "answers explode": PlantedFolder("lengths_explode", (4.5, 8.0), 3, of_each(longer), slower, made=FLAT),
    "answers collapse": PlantedFolder("lengths_collapse", (0.2, 0.1), 3, of_each(longer), slower, made=FLAT),
    "the policy repeats itself": PlantedFolder(
        "repetition", (0.7, 1.0), plays=of_a_share(says(lambda text: text + " and so I try it again" * 40))
    ),
    "the tool is no longer called": PlantedFolder("tool_unused", (1.0, 1.0), 3, of_each(calls_nothing)),
    "every call fails": PlantedFolder(
        "tool_fails",
        (0.98, 1.0),
        plays=of_a_share(call_status(ToolStatus.EXCEPTION, ToolStatus.SYNTAX_ERROR, ToolStatus.MALFORMED)),
    ),
    "one status dominates": PlantedFolder(
        "status_dominates", (0.7, 1.0), plays=of_a_share(call_status(ToolStatus.BLOCKED))
    ),
    "the sandbox is unavailable": PlantedFolder("sandbox_unavailable", (0.25, 0.8), plays=of_a_share(unavailable)),
    "injected faults have no label": PlantedFolder(
        "faults_unlabelled", (0.2, 0.6), 3, since=1, options=wrappers, plays=of_each(forgets_label)
    ),
    "the verifier runs out of time": PlantedFolder("verifier_times_out", (0.2, 0.8), plays=of_a_share(slow_verdict)),
    "the judge is constant": PlantedFolder("judge_constant", (0.3, 0.9), plays=of_each(judged)),
    "problems are duplicates": PlantedFolder("duplicates", (0.3, 0.7), 10, since=1, steps=16),
    "held-out problems are trained on": PlantedFolder("held_out_in_training", (0.5, 1.0)),
    "groups have the same seeds": PlantedFolder("same_seeds", processes=2),
    "the sampler is stuck": PlantedFolder("sampler_stuck", (4.0, 2.0), 10),
    "the curriculum does not move": PlantedFolder(
        "curriculum_still", (5.0, 7.0), 20, since=1, figures=lambda age, much: {"sampler/level": 1.0}
    ),
    "evaluations are greedier": PlantedFolder(
        "evaluation_temperature", (0.7, 0.0), since=1, options=lambda much: {"eval": {"temperature": much}}, steps=8
    ),
    "the optimizer is lost at a resume": PlantedFolder(
        "optimizer_lost", figures=lambda age, much: {"optimizer/updates": float(age)}
    ),
    "the cache is too small": PlantedFolder(
        "throughput_falls",
        (3.0, 8.0),
        5,
        figures=lambda age, much: {"*seconds/rollout": much, "engine/preemptions": 4.0},
    ),
    "one server is slow": PlantedFolder(
        "throughput_falls",
        (3.0, 8.0),
        5,
        figures=lambda age, much: {"*seconds/rollout": much, "*seconds/engine_wait": 9},
    ),
    "the sandbox has a queue": PlantedFolder(
        "throughput_falls",
        (3.0, 8.0),
        5,
        figures=lambda age, much: {"*seconds/rollout": much, "*seconds/tool": 4 * much},
    ),
    "a process waits for another": PlantedFolder(
        "process_waits", (0.45, 0.8), 5, figures=lambda age, much: {"seconds/share_waiting": much}, processes=2
    ),
    "memory grows by half": PlantedFolder(
        "memory_grows",
        (0.025, 0.035),
        40,
        figures=lambda age, much: {"memory/process_gib": 2.0 + much * age},
        since=1,
        steps=46,
    ),
}
"""The faults by name."""


def write_folder(
    folder: Path, fault: PlantedFolder | None, *, strength: float = 1.0, seed: int = 0, recipe: str = "grpo_roc"
) -> None:
    """Write a recorded run, with a fault or clean.

    Args:
        folder: Its folder.
        fault: The fault; ``None`` for a clean run.
        strength: Strength of the fault.
        seed: Seed of everything that is drawn.
        recipe: The recipe.
    """
    made = MadeRun(trainer=recipe, seed=seed, steps=fault.steps if fault else 26, eval_every=0, checkpoint_every=0)
    made = replace(made, slips=(0.3, 0.1), problems=120 if fault is None else made.problems)
    if fault is None:
        made = replace(made, eval_every=8)
    else:
        made = replace(made, options=fault.options(strength), **fault.made)
        if fault.check in ("held_out_in_training", "evaluation_temperature"):
            made = replace(made, eval_every=4)
    training = PlantedTraining(folder, made, fault, strength)
    if fault is not None and fault.check == "duplicates":
        _duplicate(training, strength, Random(seed))
    training.run()


def _duplicate(training: PlantedTraining, share: float, draw: Random) -> None:
    """Give a share of the problems the text of another problem."""
    names = list(training.problems)
    for name in names[1:]:
        if draw.random() < share:
            other = training.problems[names[0] if draw.random() < 0.1 else draw.choice(names)]
            training.problems[name] = replace(other, id=name)
