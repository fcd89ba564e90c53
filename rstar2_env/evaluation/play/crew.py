"""Crews, which play an evaluation's episodes many at a time, and the loop that collects the episodes.

Results arrive one by one in the caller's thread, in the order in which the episodes end; after an error or Ctrl-C no
further episode begins. Not covered: how an episode is played (``agent_crew``, ``policy_crew``).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.stop_request import Stop
from rstar2_env.evaluation.play.plan import Task
from rstar2_env.evaluation.play.played import PlayedEpisode
from rstar2_env.evaluation.play.scores import EpisodeScores
from rstar2_env.rewards.base import Need

Results: TypeAlias = "queue.SimpleQueue[PlayedEpisode | BaseException | None]"
"""Queue of the results of a crew's threads: an episode, an error, or ``None`` when a thread ends."""

TaskJudge: TypeAlias = Callable[[Task, Episode], bool | None]
"""Function that returns whether an episode's chain of thought is right; several threads call it at the same time."""


class Tasks:
    """Tasks that several threads share; each task is taken by one thread."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = iter(tasks)
        self._lock = threading.Lock()

    def take(self) -> Task | None:
        """Return the next task; ``None`` when none remains."""
        with self._lock:
            return next(self._tasks, None)


class Crew(Protocol):
    """Plays the episodes of an evaluation in threads.

    Attributes:
        env: An environment to read specifications from; it must not be played.
        record: The player as JSON values (``agent`` is its name); a resumed evaluation must have the same record.
        determinism: Sentence that states whether the same seeds give the same episodes.
        lacking: Inputs that reward components can need (``Need``) but this player cannot provide, mapped to the
            reasons; passed to ``check_needs``.
    """

    env: gym.Env[str, str]
    record: dict[str, Any]
    determinism: str
    lacking: Mapping[Need, str]

    def threads(
        self, tasks: Tasks, count: int, results: Results, stop: Stop, scores: EpisodeScores | None = None
    ) -> Sequence[threading.Thread]:
        """Return threads, not yet started, that play the tasks; each puts ``None`` into ``results`` when it ends.

        Args:
            tasks: The tasks to play.
            count: Number of tasks.
            results: Queue that receives the episodes and the errors.
            stop: Once a stop is requested, no further task begins.
            scores: Scores the episodes before they are put into ``results``; ``None`` adds no scores.
        """
        ...

    def close(self) -> None:
        """Cancel episodes in flight if the crew can, and close the environments."""
        ...


def drive(
    crew: Crew,
    tasks: Iterable[Task],
    count: int,
    take: Callable[[PlayedEpisode], None],
    stop: Stop,
    scores: EpisodeScores | None = None,
) -> None:
    """Let a crew play tasks, and wait until all are played; after a stop, only until the episodes in flight have ended.

    Ctrl-C requests a stop, unless the caller handles Ctrl-C; a second Ctrl-C does not wait for episodes in flight.

    Args:
        crew: Plays the tasks.
        tasks: The tasks to play.
        count: Number of tasks.
        take: Called in the calling thread with every played episode.
        stop: Once a stop is requested, no further task begins.
        scores: Scores the episodes before ``take`` is called; ``None`` adds no scores.

    Raises:
        BaseException: The first error of a thread of the crew, or of ``take``.
    """
    results: Results = queue.SimpleQueue()
    threads = crew.threads(Tasks(tasks), count, results, stop, scores)
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
                    # A Ctrl-C between taking a result and reading it can lose a thread's last report.
                    if any(thread.is_alive() for thread in threads):
                        continue
                    break
                if result is None:
                    working -= 1
                elif isinstance(result, KeyboardInterrupt):
                    stop.request()
                elif isinstance(result, BaseException):
                    failure = failure or result
                    stop.request()
                else:
                    take(result)
            except KeyboardInterrupt:
                if stop():
                    raise
                stop.request()
    except BaseException:
        stop.request()
        raise
    for thread in threads:
        thread.join()
    if failure is not None:
        raise failure
