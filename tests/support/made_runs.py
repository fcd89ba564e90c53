"""Folders of runs in their true format, written by the package's own writers around episodes that are drawn.

Selectors, samplers, advantages and figures are the real parts; only play is made up (``made_episodes``). Covered:
training with refills, checkpoints and held-out episodes, evaluations, several processes, 100,000 episodes in well under
a minute. Not covered: weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from made_episodes import Skill, made_episode, made_problems

from rstar2_env.core.episode import Episode
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.options.parts import make_inner
from rstar2_env.core.run_folder import RunWriter, TokensEntry
from rstar2_env.evaluation.figures.summary import summarize
from rstar2_env.evaluation.figures.tally import About, difficulty_of
from rstar2_env.evaluation.play.log import EvalLog
from rstar2_env.evaluation.play.plan import EvaluationPlan
from rstar2_env.problems import Problem, load_problems
from rstar2_env.trainers import api
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.options.slots import given_to
from rstar2_env.trainers.ranks import ONE
from rstar2_env.trainers.samplers.base import SAMPLERS, Start, figures_of
from rstar2_env.trainers.selectors.base import SELECTORS, AdaptsToResults
from rstar2_env.trainers.step.batch import PlayedGroup
from rstar2_env.trainers.step.problem_facts import about_problems
from rstar2_env.trainers.step.selection import select, weigh
from rstar2_env.trainers.step.step_metrics import names_in, step_metrics


@dataclass(frozen=True)
class MadeRun:
    """A run of training to make.

    Attributes:
        trainer: The recipe, which names selector, advantage and sampler.
        options: Options of the recipe, in layers as ``rstar2 train --set`` makes them.
        seed: Seed of everything that is drawn.
        steps: Optimizer steps.
        problems: How many problems there are to train on; a quarter as many are held out.
        problems_per_step: Groups of a step.
        size: Episodes that train of each group; twice as many are played.
        refill: Rounds of refill.
        eval_every: Steps between evaluations; 0 for none.
        checkpoint_every: Steps between checkpoints; 0 for none.
        slope: How fast the policy learns, in log-odds over the whole run.
        slips: Share of failing calls in the first step and, at most, in the last.
        end: The last event; empty for a run that goes on.
        tokens: Whether to keep the tokens of rows that train, as numbers that mean nothing.
    """

    trainer: str = "grpo_roc"
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    steps: int = 12
    problems: int = 40
    problems_per_step: int = 4
    size: int = 4
    refill: int = 1
    eval_every: int = 4
    checkpoint_every: int = 4
    slope: float = 2.5
    slips: tuple[float, float] = (0.3, 0.05)
    end: str = "finished"
    tokens: bool = False

    def skill(self, step: int) -> Skill:
        """How well the policy plays in a step."""
        done = 1 - math.exp(-3 * step / max(self.steps, 1))
        wave = 0.15 * math.sin(step / 2 + self.seed)
        first, last = self.slips
        return Skill(-1 + self.slope * done + wave, first + (last - first) * done)


class MadeTraining:
    """Plays and writes the steps of a run, one when it is asked for.

    Args:
        folder: The run's folder.
        made: The run.
        rank: Number of this process; beside the first, only episodes are written.
    """

    def __init__(self, folder: Path, made: MadeRun, *, rank: int = 0) -> None:
        recipe, of_file = api.find_recipe(made.trainer)
        sizes = {"problems_per_step": made.problems_per_step, "group_size": made.size, "oversample": 2}
        sizes["refill"] = made.refill
        asked = {"model": "made/tiny", "run": {"seed": made.seed, "steps": made.steps}, "rollout": sizes}
        self.config = {"trainer": recipe.name, **recipe.configure(of_file, asked, dict(made.options)).record()}
        self.made, self.folder = made, folder
        self.problems = {one.id: one for one in made_problems(made.problems, seed=1)}
        self.held = made_problems(max(1, made.problems // 4), seed=2)
        self.held = [replace(one, id=f"held-{one.id}") for one in self.held]
        self.about = about_problems(load_problems([*self.problems.values(), *self.held]))
        parts = self.config["parts"]
        self.selector = make_inner(SELECTORS, parts["selector"])
        self.advantage = make_inner(ADVANTAGES, parts["advantage"])
        self.sampler = _sampler(parts["sampler"], list(self.problems.values()), made.seed)
        self.writer = RunWriter(folder, rank=rank, tokens=made.tokens)
        self._rank = rank
        self.writer.begin(self.config, processes=1)

    def run(self) -> None:
        """Write every step, and the end."""
        if self.made.eval_every:
            self.evaluate(0)
        for step in range(1, self.made.steps + 1):
            self.step(step)
        self.end()

    def step(self, step: int) -> list[PlayedGroup]:
        """Play and write a step, from 1; with what follows it: figures, a checkpoint, an evaluation."""
        made, rng = self.made, Random(f"{self.made.seed}/{self._rank}/{step}")
        skill, groups, wanted = made.skill(step), list[PlayedGroup](), made.problems_per_step
        stands = figures_of(self.sampler)
        for number in range(made.refill + 1):
            starts = self.sampler.draw(wanted - sum(bool(group.kept) for group in groups))
            first = len(groups) + self._rank * wanted
            groups += [self._group(first + at, number, step, one, skill, rng) for at, one in enumerate(starts)]
        training = [group for group in groups if group.kept]
        for group, values in zip(training, self.advantage([one.chosen for one in training], ONE), strict=True):
            group.advantages = [float(np.mean(value)) for value in values]
        episodes, decisions = [one.episodes for one in groups], [one.decisions() for one in groups]
        self.writer.train(step, episodes, decisions, extra=self.about)
        if made.tokens:
            self.writer.tokens(_tokens(step, training, rng))
        outcomes = [group.result() for group in groups]
        for part in (self.sampler, self.selector):
            if isinstance(part, AdaptsToResults):
                part.observe(outcomes)
        self._figures(step, groups, stands, rng)
        if not self._rank and made.checkpoint_every and step % made.checkpoint_every == 0:
            self._checkpoint(step)
        if made.eval_every and step % made.eval_every == 0:
            self.evaluate(step)
        return groups

    def evaluate(self, step: int) -> None:
        """Play the held-out problems twice after a step, and write what came of it."""
        rng, skill = Random(f"{self.made.seed}/eval/{step}"), self.made.skill(step)
        twice = [one for one in self.held for _ in range(2)]
        played = [made_episode(one, skill, rng, group=at, seed=at // 2) for at, one in enumerate(twice)]
        figures = {name: math.nan if value is None else value for name, value in summarize(played).figures().items()}
        self.writer.held_out(step, played, extra=self.about)
        self.writer.event("evaluation", step, figures=figures)
        self.writer.metrics(step, {f"eval/{name}": value for name, value in figures.items()})

    def end(self) -> None:
        """Write the last event, if the run has one."""
        more = {"error": "RuntimeError: the engine ended"} if self.made.end == "failed" else {}
        if self.made.end:
            self.writer.event(self.made.end, self.made.steps, **more)

    def played(self, start: Start, number: int, step: int, skill: Skill, rng: Random) -> list[Episode]:
        """The episodes of a group, before rewards are compared."""
        problem = self.problems[start.problem_id]
        return [
            made_episode(problem, skill, rng, group=number, seed=start.seed, version=step - 1)
            for _ in range(2 * self.made.size)
        ]

    def measured(self, step: int, figures: dict[str, float], rng: Random) -> dict[str, float]:
        """The figures of a step as they are written."""
        return figures

    def _group(self, number: int, round: int, step: int, start: Start, skill: Skill, rng: Random) -> PlayedGroup:
        played = self.played(start, number, step, skill, rng)
        draws = np.random.default_rng([self.made.seed, self._rank, step, number])
        kept, reasons = select(played, self.selector, self.made.size, draws, 2)
        weighed = weigh(played, self.selector, self.made.size)
        return PlayedGroup(number, round, start, played, kept, reasons, weighed=weighed)

    def _figures(self, step: int, groups: Sequence[PlayedGroup], stands: Mapping[str, float], rng: Random) -> None:
        found = step_metrics(groups, 0, names_in(groups), first=True)
        figures = {name: total / count for name, (total, count) in found.items() if count} | dict(stands)
        tokens = sum(one.policy_tokens for group in groups for one in group.episodes)
        seconds = {"rollout": 20 + rng.random() * 5, "tool": 4 + rng.random(), "train": 9 + rng.random()}
        seconds |= {"hand_over": 0.4, "reward": 0.1, "select": 0.02, "advantage": 0.01, "engine_wait": 1.0}
        figures |= {f"seconds/{name}": value for name, value in seconds.items()}
        figures |= {"loss": rng.gauss(0, 0.02), "grad_norm": rng.random() + 0.2, "learning_rate": 1e-6}
        figures |= {"tokens/computed": 1.04 * tokens, "tokens/trained": tokens / 2, "tokens/share_trained": 0.5 / 1.04}
        figures |= {"policy/ratio": 1 + rng.gauss(0, 1e-3), "policy/entropy": 0.4 / step**0.3}
        self.writer.metrics(step, self.measured(step, figures, rng))

    def _checkpoint(self, step: int) -> None:
        path = self.folder / f"checkpoint-{step}"
        path.mkdir(exist_ok=True)
        parts = {"selector": self.selector.state_dict()} if hasattr(self.selector, "state_dict") else {}
        state = {"sampler": self.sampler.state_dict(), "parts": parts, "counts": {"steps": step}, "left": []}
        (path / "sampler.json").write_text(json.dumps(jsonable(state)), "utf-8")
        self.writer.event("checkpoint", step, path=path.name, sampler=f"{path.name}/sampler.json")


def write_training(folder: Path, made: MadeRun | None = None, **options: Any) -> MadeTraining:
    """Write a whole run of training.

    Args:
        folder: Its folder.
        made: What to make.
        **options: Attributes of ``MadeRun`` that replace its own.
    """
    training = MadeTraining(folder, replace(made or MadeRun(), **options))
    training.run()
    return training


def write_evaluation(folder: Path, *, seed: int = 0, problems: int = 40, samples: int = 4, right: float = 0.0) -> Path:
    """Write an evaluation as ``rstar2 eval --out FOLDER`` does; the same problems whatever the seed.

    Args:
        folder: Its folder; a name with a suffix is a single file.
        seed: Seed of what is played.
        problems: How many problems.
        samples: Episodes of each.
        right: Log-odds of a right answer to a problem of middling difficulty.
    """
    chosen, rng = made_problems(problems, seed=3), Random(seed)
    plan = EvaluationPlan(chosen, len(chosen), 0, samples)
    run = {"env": "rstar2/MathTool-v0", "env_options": {}, "model": f"made/tiny-{seed}", "problems": "made"}
    played: list[Episode] = []
    with closing(EvalLog(folder, run=run | {"split": "test", "seed": 0, "n": samples}, plan=plan)) as log:
        for task in plan:
            assert task.problem is not None
            episode = made_episode(task.problem, Skill(right, 0.2), rng, group=task.index, seed=task.seed)
            about = About(task.start, task.problem.source, difficulty_of(task.problem))
            log.write(episode, task, about=about, seconds=0.5 + rng.random())
            played.append(episode)
        summary = summarize(played)
        log.end(summary.figures(), {"run": run, **summary.to_dict()}, interrupted=False)
    return folder


def write_many(folder: Path, episodes: int = 100_000, *, size: int = 16, processes: int = 2, groups: int = 12) -> int:
    """Write a run of so many episodes, as several processes that train together do; return how many there are.

    Args:
        folder: Its folder.
        episodes: How many; rounded up to whole steps.
        size: Episodes played of each group.
        processes: Processes that play; each writes its own files, at the same time. Figures are the first one's.
        groups: Groups of a step of each process.
    """
    steps = math.ceil(episodes / (groups * size * processes))
    made = MadeRun(seed=7, steps=steps, problems=500, problems_per_step=groups, size=size // 2, refill=0, eval_every=0)
    made = replace(made, checkpoint_every=steps)
    first = MadeTraining(folder, made)  # begins the folder before the others write
    with ProcessPoolExecutor(processes - 1, mp_context=get_context("spawn")) if processes > 1 else _Nobody() as pool:
        others = [pool.submit(_write_rank, folder, made, rank) for rank in range(1, processes)]
        first.run()
        for other in others:
            other.result()
    return steps * groups * size * processes


def _write_rank(folder: Path, made: MadeRun, rank: int) -> None:
    MadeTraining(folder, made, rank=rank).run()


class _Nobody:
    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _sampler(part: Mapping[str, Any], problems: Sequence[Problem], seed: int) -> Any:
    make, source = SAMPLERS.get(part["name"]), load_problems(list(problems))
    given = given_to(make, {"ids": [one.id for one in problems], "seed": seed, "problems": source})
    return make(**given, **{name: value for name, value in part.items() if name != "name"})


def _tokens(step: int, groups: Sequence[PlayedGroup], rng: Random) -> Iterator[TokensEntry]:
    for group in groups:
        for position, advantage in zip(group.kept, group.advantages, strict=True):
            episode = group.episodes[position]
            ids, mask = list[int](), list[int]()
            for turn in episode.steps:
                ids += [rng.randrange(4, 90) for _ in range(turn.stop - len(ids))]
                mask += [0] * (turn.start - len(mask))
                mask += [1] * turn.tokens
            logprobs = [-rng.expovariate(3) * one for one in mask]
            ratios = [math.exp(rng.gauss(0, 0.02)) if one else 1.0 for one in mask]
            prompt = [rng.randrange(4, 90) for _ in range(30)]
            yield TokensEntry(step, group.number, position, prompt, ids, mask, logprobs, [advantage] * len(ids), ratios)
