"""``Rates``: recent results of problems, by id; measured during training, or read from an evaluation.

Covered: the latest episodes of each problem, reading the folder of a run, the state for checkpoints. Not covered: how a
sampler uses the rates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run

from .base import GroupResult


class Rates:
    """The mean result of each problem over its latest groups; a result is a success (1 or 0) or a reward.

    Args:
        least: Minimum number of episodes in the mean. The mean covers the smallest number of latest groups that have at
            least this many episodes.
    """

    def __init__(self, least: int = 1) -> None:
        self._least = least
        self._known: dict[str, list[tuple[float, int]]] = {}

    def add(self, problem_id: str, total: float, episodes: int) -> None:
        """Add the results of a group's episodes to the problem's results.

        Args:
            problem_id: Id of the problem.
            total: Sum of the results of the group's episodes.
            episodes: Number of the group's episodes; if 0, the group is ignored.
        """
        if not episodes:
            return
        groups = self._known.setdefault(problem_id, [])
        groups.append((float(total), episodes))
        while sum(count for _, count in groups[1:]) >= self._least:
            del groups[0]

    def observe(self, outcomes: Sequence[GroupResult], known: Collection[str]) -> None:
        """Add the successes of the groups whose problem is in ``known``."""
        for outcome in outcomes:
            if outcome.start.problem_id in known:
                self.add(outcome.start.problem_id, outcome.successes, outcome.episodes)

    def episodes(self, problem_id: str) -> int:
        """Return the number of episodes over which a problem's mean result is computed."""
        return sum(count for _, count in self._known.get(problem_id, ()))

    def of(self, problem_id: str) -> float | None:
        """Return the mean result of a problem; ``None`` if it has no episode."""
        episodes = self.episodes(problem_id)
        return sum(total for total, _ in self._known[problem_id]) / episodes if episodes else None

    def read(self, path: str, known: Collection[str]) -> None:
        """Read the pass rates of problems from an evaluation, or from the last evaluation of a run.

        Args:
            path: Output of ``rstar2 eval --out``, or the folder of a run.
            known: Ids of the problems whose rates are read.

        Raises:
            ConfigurationError: The path is neither an evaluation nor a run, or has no episode of these problems.
        """
        run = read_run(path)
        steps = run.evaluated_steps
        sums: dict[str, tuple[int, int]] = {}
        for entry in run.held_out(steps[-1]) if steps else ():
            episode = entry.episode
            if episode.available and episode.problem_id in known:
                right, played = sums.get(episode.problem_id, (0, 0))
                sums[episode.problem_id] = (right + episode.correct, played + 1)
        if not sums:
            raise ConfigurationError(
                f"{path} does not contain an evaluated episode of any of the {len(known)} training problems. Evaluate "
                "them with: rstar2 eval ENV --problems FILE --out FOLDER."
            )
        for problem_id, (right, played) in sums.items():
            self.add(problem_id, float(right), played)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values."""
        return {name: [list(group) for group in groups] for name, groups in self._known.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned."""
        self._known = {name: [(float(total), int(count)) for total, count in groups] for name, groups in state.items()}
