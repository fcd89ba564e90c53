"""The state of a running evaluation: its finished episodes, their counts, and their lines in the file.

Covered: bounded memory (episodes are kept only if the caller requests it and no file holds them). Not covered: the file
itself (``rstar2_env.evaluation.play.log``).
"""

from __future__ import annotations

from collections.abc import Iterator

from rstar2_env.core.episode import Episode
from rstar2_env.evaluation.figures.tally import About, EpisodeTally, difficulty_of
from rstar2_env.evaluation.play.log import EvalLog
from rstar2_env.evaluation.play.plan import EvaluationPlan, Task
from rstar2_env.evaluation.play.played import PlayedEpisode

PolicyTexts = tuple[str, ...]


class Ledger:
    """Collects the episodes of an evaluation.

    Args:
        plan: The episodes of the evaluation.
        judged: Whether the evaluation has a judge of chains of thought.
        keep: Keep the episodes in memory.
        mark: Number of episodes to play again; the turns of the first ``mark`` episodes are kept for the comparison.

    Attributes:
        tally: Counts of the finished episodes.
        count: Number of finished episodes.
        first: The text of each of the player's turns in the first ``mark`` episodes, by the episode's number.
        log: The file that ``take`` writes to; ``None`` for no file.
    """

    def __init__(self, plan: EvaluationPlan, *, judged: bool = False, keep: bool = True, mark: int = 0) -> None:
        self.tally = EpisodeTally()
        self.count = 0
        self.first: dict[int, PolicyTexts] = {}
        self._plan, self._judged, self._mark = plan, judged, mark
        self._done = bytearray(len(plan))
        self._kept: dict[int, Episode] | None = {} if keep else None
        self.log: EvalLog | None = None

    @property
    def episodes(self) -> tuple[Episode, ...] | None:
        """The episodes in the order of the plan; ``None`` if they are not kept."""
        return None if self._kept is None else tuple(self._kept[index] for index in sorted(self._kept))

    def missing(self) -> Iterator[Task]:
        """Return the tasks without a finished episode."""
        return (self._plan[index] for index in range(len(self._plan)) if not self._done[index])

    def restore(self, episode: Episode, about: About) -> None:
        """Count an episode that was read from the log file of an earlier, interrupted run."""
        self._add(episode, about)

    def take(self, played: PlayedEpisode) -> None:
        """Count an episode that was played, and write it to ``log``, if there is one."""
        task = played.task
        about = About(
            task.start,
            "" if task.problem is None else task.problem.source,
            difficulty_of(task.problem),
            played.chain,
            self._judged,
        )
        self._add(played.episode, about)
        if self.log is not None:
            self.log.write(played.episode, task, about=about, seconds=round(played.seconds, 6))

    def _add(self, episode: Episode, about: About) -> None:
        index = episode.group
        self._done[index] = True
        self.count += 1
        self.tally.add(episode, about)
        if self._kept is not None:
            self._kept[index] = episode
        if index < self._mark:
            self.first[index] = words_of(episode)


def words_of(episode: Episode) -> PolicyTexts:
    """Return the player's text of each turn."""
    return tuple(message.content for message in episode.messages if message.role == "assistant")
