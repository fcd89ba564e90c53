"""Plays many episodes in parallel and says how they went, with standard errors.

Covered: one environment and one agent to each worker thread, a result file that can be resumed, interruption. The
sandbox and the verifier are shared by all threads of the process. Not covered: the choice of problems (``plan``), the
figures themselves (``summary``), and evaluation within training, which plays in batches with the policy's own engine.
"""

from __future__ import annotations

import importlib
import inspect
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import Count, Seed, checked, typed_options
from rstar2_env.core.parts import PartSpec, read_part
from rstar2_env.core.stop import Stop
from rstar2_env.env.agent import AnyAgent
from rstar2_env.env.named import EnvSpec, find_env
from rstar2_env.env.options import env_options as typed_env_options
from rstar2_env.evaluation.log import EvalLog
from rstar2_env.evaluation.plan import Task, plan_of, source_of
from rstar2_env.evaluation.play import StopPlayingError, play_episode
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.summary import summarize
from rstar2_env.problems import ProblemSpec
from rstar2_env.wrappers.make import make_env
from rstar2_env.wrappers.registry import read_wrappers, recorded

Progress: TypeAlias = Callable[[Episode, int, int], None]
"""Called in the caller's thread after every episode: the episode, how many are done, how many there will be."""


@checked
def evaluate(
    env_id: EnvSpec,
    agent: str | Callable[[], AnyAgent],
    *,
    problems: ProblemSpec | None = None,
    split: str = "test",
    episodes: Count | None = None,
    seed: Seed = 0,
    workers: Count | None = None,
    env_options: Mapping[str, Any] | None = None,
    wrappers: str | Sequence[PartSpec] = (),
    agent_options: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> EvalResult:
    """Let an agent play an environment.

    Results are the same for the same arguments, however many workers there are. Ctrl-C ends the episodes in flight
    after their turn and returns what there is, with ``interrupted`` set.

    Args:
        env_id: A Gymnasium id, one's own code, or a class or function, as ``make_env`` takes it.
        agent: Name of an agent, or one's own code, alone or with options ("random_text:length=5"); or a function that
            makes one. Every worker makes its own.
        problems: What ``load_problems`` takes; ``None`` means the source of the environment itself, and one that has
            none chooses by the seed of each episode.
        split: Split of the problems, where the source has splits.
        episodes: How many episodes; ``None`` plays every problem of a finite source once. Otherwise the problems are
            chosen at random, without repetition until all were played.
        seed: Of the choice of problems and of every episode.
        workers: Threads, each with an environment; by default four for each processor, at most 32.
        env_options: Options of the environment.
        wrappers: Put around every environment, the innermost first, as ``make_env`` takes them.
        agent_options: Options of an agent given by name. One that takes a ``dialect`` gets the environment's.
        out: File that takes one JSON line an episode, or, without a suffix, the folder of a run; see
            docs/run-folder.md.
        resume: Take up ``out`` where it ends; ``unavailable`` episodes in it are played again.
        overwrite: Replace ``out`` if it exists.
        progress: Called after every episode.
        stop: Once a stop is requested, the episodes in flight end after their turn, as after Ctrl-C.

    Raises:
        ConfigurationError: The options do not fit together; an unlimited source needs ``episodes``.
        UnknownNameError: No agent, environment part or family has that name.
        Exception: Whatever the agent or the environment raised, with a note on the problem; ``out`` keeps what was
            done.
    """
    workers = min(32, 4 * (os.cpu_count() or 1)) if workers is None else workers
    env = find_env(env_id)
    env_options = typed_env_options(env, env_options)
    wrappers = read_wrappers(wrappers)
    agent_options = _agent_options(agent, agent_options)
    players: list[_Player] = []
    try:
        players.append(_Player.make(env_id, agent, env_options, wrappers, agent_options))
        if getattr(players[0].agent, "interactive", False):
            workers = 1
        source = source_of(players[0].env, problems, split)
        plan = plan_of(source, episodes, seed)
        run: dict[str, Any] = {
            "env": env.name,
            "env_options": dict(env_options),
            **({"wrappers": recorded(wrappers)} if wrappers else {}),
            "agent": _name(agent),
            "agent_options": dict(agent_options),
            "problems": source.name if source else "",
            "split": source.split if source else "",
            "seed": seed,
        }
        keys = {task.index: (task.seed, task.problem_id) for task in plan}
        log = None if out is None else EvalLog(out, run=run, plan=keys, resume=resume, overwrite=overwrite)
        try:
            done = dict(log.finished) if log else {}
            todo = [task for task in plan if task.index not in done]
            for _ in range(1, min(workers, len(todo))):
                players.append(_Player.make(env_id, agent, env_options, wrappers, agent_options))
            began = time.perf_counter()
            taken_up = len(done)
            interrupted = _play(players, todo, done, len(plan), log, progress, Stop() if stop is None else stop)
            seconds = time.perf_counter() - began
            if log:
                log.end(summarize(done[index] for index in sorted(done)).figures(), interrupted=interrupted)
        finally:
            if log:
                log.close()
    finally:
        for player in players:
            player.close()
    return EvalResult(
        env_id=env.name,
        agent=run["agent"],
        problems=run["problems"],
        split=run["split"],
        episodes=tuple(done[index] for index in sorted(done)),
        played=len(done) - taken_up,
        seconds=seconds,
        interrupted=interrupted,
    )


@dataclass(slots=True)
class _Player:
    """An environment and an agent; one thread uses them."""

    env: gym.Env[str, str]
    agent: AnyAgent
    busy: bool = False

    @classmethod
    def make(
        cls,
        env_id: EnvSpec,
        agent: str | Callable[[], AnyAgent],
        env_options: Mapping[str, Any],
        wrappers: Sequence[PartSpec],
        agent_options: Mapping[str, Any],
    ) -> _Player:
        env = make_env(env_id, wrappers=wrappers, **env_options)
        if not isinstance(agent, str):
            return cls(env, agent())
        # By name, not by import: the ground floor knows no agent.
        package = importlib.import_module("rstar2_env.agents")
        part = read_part(agent, "agent")
        options = {**agent_options, **part.options}
        dialect = getattr(env.unwrapped, "dialect", None)
        if dialect is not None and "dialect" in inspect.signature(package.AGENTS.get(part.name)).parameters:
            options.setdefault("dialect", dialect)
        return cls(env, package.make(part.name, **options))

    def play(self, task: Task, stopped: Callable[[], bool]) -> tuple[Episode, float]:
        began = time.perf_counter()
        episode = play_episode(self.env, self.agent, seed=task.seed, problem=task.problem, stopped=stopped)
        episode.group = task.index
        return episode, time.perf_counter() - began

    def close(self) -> None:
        # An environment that is still in use by its thread must not be closed.
        if not self.busy:
            self.env.close()


def _play(
    players: list[_Player],
    todo: list[Task],
    done: dict[int, Episode],
    total: int,
    log: EvalLog | None,
    progress: Progress | None,
    stop: Stop,
) -> bool:
    """Play ``todo`` into ``done``; return whether it was interrupted."""
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in todo:
        tasks.put(task)
    results: queue.SimpleQueue[tuple[Task, Episode, float] | BaseException | None] = queue.SimpleQueue()

    def work(player: _Player) -> None:
        player.busy = True
        task = None
        try:
            while not stop():
                try:
                    task = tasks.get_nowait()
                except queue.Empty:
                    break
                with stop.flight():
                    played = player.play(task, stop)
                results.put((task, *played))
        except StopPlayingError:
            pass
        except BaseException as error:
            if task is not None:
                which = task.problem_id or "of its choice"
                error.add_note(f"While playing episode {task.index} (seed {task.seed}, problem {which}).")
            results.put(error)
        finally:
            player.busy = False
            results.put(None)

    def take(result: tuple[Task, Episode, float]) -> None:
        task, episode, seconds = result
        done[task.index] = episode
        if log:
            log.write(episode, gold=task.problem.answer if task.problem else None, seconds=round(seconds, 6))
        if progress:
            progress(episode, len(done), total)

    threads = [threading.Thread(target=work, args=(player,), name="evaluate", daemon=True) for player in players]
    failure: BaseException | None = None
    try:
        for thread in threads:
            thread.start()
        working = len(threads)
        while working:
            try:
                try:
                    result = results.get(timeout=1.0)
                except queue.Empty:
                    # A Ctrl-C between taking a result and reading it can lose a worker's last report.
                    if any(thread.is_alive() for thread in threads):
                        continue
                    break
                if result is None:
                    working -= 1
                elif isinstance(result, KeyboardInterrupt):
                    stop.wish()
                elif isinstance(result, BaseException):
                    failure = failure or result
                    stop.wish()
                else:
                    take(result)
            except KeyboardInterrupt:
                if stop():
                    raise
                # The episodes in flight end after their turn; a second Ctrl-C does not wait for them.
                stop.wish()
    finally:
        stop.wish()
    for thread in threads:
        thread.join()
    if failure is not None:
        raise failure
    return len(done) < total


def _agent_options(agent: str | Callable[[], AnyAgent], options: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(agent, str):
        if options:
            raise ConfigurationError("agent_options belong to an agent given by name; this one is a function.")
        return {}
    part = read_part(agent, "agent")
    agents = importlib.import_module("rstar2_env.agents").AGENTS
    return typed_options(f"agent {part.name!r}", agents.get(part.name), options or {})


def _name(agent: str | Callable[[], AnyAgent]) -> str:
    return agent if isinstance(agent, str) else getattr(agent, "__qualname__", type(agent).__qualname__)
