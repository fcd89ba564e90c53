"""Reverify: grade the stored answers of a run again, with any verifier, and report the changed verdicts.

Covered: answers that are compared with a gold answer. Not covered: environments that grade in another way (puzzles,
games), since their episodes have no gold answer and are left out; how an answer is extracted from the policy's text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core import trust
from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.run_folder import EpisodeEntry
from rstar2_env.core.trust import UntrustedError
from rstar2_env.dialects import make_dialect
from rstar2_env.evaluation.stored.runs import Setting, problem_of
from rstar2_env.problems import ProblemSource
from rstar2_env.verification import Reason, Verdict
from rstar2_env.verification.verifier import Verifier

_AHEAD = 8
"""Number of episodes that are read in advance for each thread; it bounds the memory."""


@dataclass(frozen=True, slots=True)
class Regraded:
    """An episode that was graded again.

    Attributes:
        entry: The episode, as the run stores it.
        gold: The gold answer; ``None`` if the answer was not graded, because the gold answer is unknown or the
            episode does not count.
        verdict: The new verdict; ``None`` if the answer was not graded.
    """

    entry: EpisodeEntry
    gold: str | None
    verdict: Verdict | None

    @property
    def graded(self) -> bool:
        """Whether the verifier returned a new verdict."""
        return self.verdict is not None and self.verdict.reason is not Reason.UNAVAILABLE

    @property
    def changed(self) -> bool:
        """Whether the verdict differs from the stored one."""
        return self.graded and self.verdict is not None and self.verdict.correct is not self.entry.episode.correct


@dataclass(slots=True)
class Regrading:
    """The result of grading again.

    Attributes:
        graded: Number of episodes with a new verdict.
        correct_before: Number of these graded episodes that were right before.
        correct: Number of these graded episodes that are right now.
        no_gold: Number of episodes left out because their gold answer is unknown.
        uncounted: Number of episodes left out because they failed, were cancelled or could not be played.
        unavailable: Number of episodes for which the verifier was not available.
        changes: Episodes whose verdict changed.
    """

    graded: int = 0
    correct_before: int = 0
    correct: int = 0
    no_gold: int = 0
    uncounted: int = 0
    unavailable: int = 0
    changes: list[Regraded] = field(default_factory=list)

    def add(self, one: Regraded) -> None:
        """Count an episode that was graded again."""
        if not one.entry.episode.available:
            self.uncounted += 1
        elif one.verdict is None:
            self.no_gold += 1
        elif not one.graded:
            self.unavailable += 1
        else:
            self.graded += 1
            self.correct_before += one.entry.episode.correct
            self.correct += one.verdict.correct
            if one.changed:
                self.changes.append(one)


def regrade(
    entries: Iterable[EpisodeEntry],
    verifier: Verifier,
    *,
    setting: Setting | None = None,
    source: ProblemSource | None = None,
    threads: int = 4,
) -> Iterator[Regraded]:
    """Grade episodes again, in their order.

    Args:
        entries: The episodes.
        verifier: Compares answer and gold answer.
        setting: Setting of the run; its dialect separates the question from the instruction around it. ``None`` assumes
            the dialect ``rstar2``.
        source: Source of the problems, whose questions and gold answers replace those that the run keeps; ``None`` uses
            only those that the run keeps.
        threads: Number of episodes graded at the same time.
    """
    asked = _question_reader(setting)

    def grade(entry: EpisodeEntry) -> Regraded:
        episode = entry.episode
        if not episode.available:
            return Regraded(entry, None, None)
        problem = problem_of(source, episode.problem_id)
        kept = entry.more.get("gold")
        gold = problem.answer if problem is not None else str(kept) if kept is not None else None
        if gold is None:
            return Regraded(entry, None, None)
        user = next((message.content for message in episode.messages if message.role == "user"), "")
        question = problem.question if problem is not None else asked(user)
        return Regraded(entry, gold, verifier(gold, episode.answer, question))

    remaining = iter(entries)
    with ThreadPoolExecutor(threads, thread_name_prefix="regrade") as pool:
        while batch := list(itertools.islice(remaining, threads * _AHEAD)):
            yield from pool.map(grade, batch)


def regraded_line(one: Regraded, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON record of an episode with its new grade.

    Args:
        one: The episode that was graded again.
        record: The JSON record of the episode. If its reward agrees with its stored verdict (1 for right, 0 for
            wrong), the reward changes with the verdict.
    """
    if not one.changed or one.verdict is None:
        return dict(record)
    line = {**record, "correct": one.verdict.correct}
    if record.get("reward") == float(one.entry.episode.correct):
        line["reward"] = float(one.verdict.correct)
        if record.get("steps"):
            last = {**record["steps"][-1], "reward": line["reward"]}
            line["steps"] = [*record["steps"][:-1], last]
    return line


def _question_reader(setting: Setting | None) -> Callable[[str], str | None]:
    """Return a function that removes the dialect's text around the question from the user's message.

    The function returns ``None`` if the message does not have that text, or if the dialect is unknown. Without
    ``setting``, the dialect is ``rstar2``.
    """
    options = {} if setting is None else setting.env_options
    try:
        with trust.bounds(trust=setting is None or setting.trusted):
            dialect = make_dialect(options.get("dialect") or "rstar2", **(options.get("dialect_options") or {}))
        before, mark, after = dialect.user("\0").partition("\0")
    except UntrustedError:
        raise
    except Rstar2Error:
        return lambda user: None
    if not mark:
        return lambda user: None

    def read(user: str) -> str | None:
        whole = user.startswith(before) and user.endswith(after) and len(user) >= len(before) + len(after)
        return user[len(before) : len(user) - len(after)] if whole else None

    return read
