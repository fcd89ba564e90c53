"""``Rates``: how problems went of late, by their ids; measured while a run trains, or read from an evaluation.

Covered: the latest episodes of each problem, reading the folder of a run, the state for checkpoints. Not covered: what
a sampler makes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run


class Rates:
    """A mean of the latest episodes of each problem, in whole groups.

    Args:
        least: Episodes over which the mean is taken: as many of the latest groups count as hold at least so many.
    """

    def __init__(self, least: int = 1) -> None:
        self._least = least
        self._known: dict[str, list[tuple[float, int]]] = {}

    def add(self, problem_id: str, total: float, episodes: int) -> None:
        """Add a group: the sum over its episodes, and how many there are; of none, nothing is learned."""
        if not episodes:
            return
        groups = self._known.setdefault(problem_id, [])
        groups.append((float(total), episodes))
        while sum(count for _, count in groups[1:]) >= self._least:
            del groups[0]

    def episodes(self, problem_id: str) -> int:
        """Over how many episodes the mean is."""
        return sum(count for _, count in self._known.get(problem_id, ()))

    def of(self, problem_id: str) -> float | None:
        """The mean; ``None`` of a problem that was never seen."""
        episodes = self.episodes(problem_id)
        return sum(total for total, _ in self._known[problem_id]) / episodes if episodes else None

    def read(self, path: str, known: Collection[str]) -> None:
        """Read the pass rates of problems from an evaluation, or from the last evaluation of a run.

        Args:
            path: What ``rstar2 eval --out`` or a run wrote.
            known: The ids that count.

        Raises:
            ConfigurationError: It is no run, or it has no episode of any of these problems.
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
                f"{path} has no evaluated episode of any of the {len(known)} problems to train on: measure these "
                "(rstar2 eval ENV --problems FILE --out FOLDER)."
            )
        for problem_id, (right, played) in sums.items():
            self.add(problem_id, float(right), played)

    def state_dict(self) -> dict[str, Any]:
        """The state, as JSON can hold it."""
        return {name: [list(group) for group in groups] for name, groups in self._known.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._known = {name: [(float(total), int(count)) for total, count in groups] for name, groups in state.items()}
