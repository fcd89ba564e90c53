"""Counts of an evaluation by problem, added up episode by episode: what every figure is worked out from.

Covered: bounded memory, since an episode leaves only its counts and its answer behind. Not covered: the figures
themselves (``rstar2_env.evaluation.figures.summary``, ``rstar2_env.evaluation.figures.intervals``).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder.entries import EpisodeEntry
from rstar2_env.problems import Problem

CUT_ENDS = frozenset({"tokens", "turns", "time", "truncated"})
"""Ends at which a budget was used up."""

SHARES = {
    "pass_rate": ("correct", "episodes"),
    "reward": ("reward", "episodes"),
    "tool_error_share": ("errors", "calls"),
    "tool_error_share_correct": ("errors_correct", "calls_correct"),
    "tool_calls": ("calls", "episodes"),
    "turns": ("turns", "episodes"),
    "broken_format": ("broken", "episodes"),
    "code_share": ("coded", "episodes"),
    "code_share_correct": ("coded_correct", "correct"),
    "tokens": ("tokens", "tokened"),
    "repetition": ("repeated", "episodes"),
    "truncated": ("cut", "episodes"),
}
"""Figures that are a ratio of two sums of counts: by name, what is over what."""

COUNTS = tuple(dict.fromkeys(name for pair in SHARES.values() for name in pair))

_WORDS = 4
_DIFFICULTY = ("difficulty", "level")


@dataclass(frozen=True, slots=True)
class About:
    """What an episode's line says beside the episode itself.

    Attributes:
        start: Number of its start, which stands for a problem without an id.
        source: Where its problem comes from; empty where nobody says.
        difficulty: How difficult its problem is, in the words of its source; empty likewise.
        chain: Whether a judge found its chain of thought right; ``None`` where none was asked, or none replied.
        judged: Whether a judge was asked.
    """

    start: int = 0
    source: str = ""
    difficulty: str = ""
    chain: bool | None = None
    judged: bool = False

    @classmethod
    def of_line(cls, index: int, line: Mapping[str, Any]) -> About:
        """Of a line of an evaluation's file.

        Args:
            index: The episode's number in the evaluation.
            line: The line's further keys, as ``EpisodeEntry.more`` has them.
        """
        start, chain = line.get("start"), line.get("chain")
        return cls(
            start if isinstance(start, int) else index,
            str(line.get("problem_source") or ""),
            str(line.get("difficulty") or ""),
            chain if isinstance(chain, bool) else None,
            "chain" in line,
        )


def cause_of(episode: Episode) -> str:
    """Why an episode failed, in a line."""
    lines = (episode.error or "").strip().splitlines()
    return lines[-1].strip() if lines else "the tool or the grader did not answer"


def difficulty_of(problem: Problem | None) -> str:
    """How difficult a problem is, in the words of its source; empty where it does not say."""
    meta: Mapping[str, Any] = {} if problem is None else problem.meta
    return next((str(meta[name]) for name in _DIFFICULTY if meta.get(name) not in (None, "")), "")


@dataclass(slots=True)
class ProblemTally:
    """What the episodes of one problem came to.

    Attributes:
        source: Where it comes from.
        difficulty: How difficult it is.
        counts: Sums over its episodes that count, by the names of ``COUNTS``.
        wrong: How often each wrong answer was given; the other wrong episodes gave none.
        chains: Episodes that are right with a right chain.
        unjudged: Right episodes whose chain nobody judged.
        rewards: By component of the reward, and by score, the sum over the episodes that have it, and how many do.
    """

    source: str = ""
    difficulty: str = ""
    counts: array[float] = field(default_factory=lambda: array("d", bytes(8 * len(COUNTS))))
    wrong: dict[str, int] = field(default_factory=dict)
    chains: int = 0
    unjudged: int = 0
    rewards: dict[str, tuple[float, int]] = field(default_factory=dict)

    @property
    def episodes(self) -> int:
        """Episodes that count."""
        return round(self.counts[_AT["episodes"]])

    @property
    def correct(self) -> int:
        """Those of them that are right."""
        return round(self.counts[_AT["correct"]])

    def votes(self) -> tuple[list[str | None], list[bool]]:
        """An answer and a verdict for each episode, as ``maj_at_k`` takes them."""
        answers: list[str | None] = [""] * self.correct
        answers += [answer for answer, times in self.wrong.items() for _ in range(times)]
        answers += [None] * (self.episodes - len(answers))
        return answers, [at < self.correct for at in range(len(answers))]


def reward_columns(problems: Sequence[ProblemTally]) -> dict[str, tuple[list[float], list[float]]]:
    """By the name that training's metrics have, ``reward/NAME``, what is over what for each component of the reward.

    Args:
        problems: The problems; each column has a number for each of them.
    """
    names = sorted({name for problem in problems for name in problem.rewards})
    found = {}
    for name in names:
        pairs = [problem.rewards.get(name, (0.0, 0)) for problem in problems]
        found[f"reward/{name}"] = [total for total, _ in pairs], [float(count) for _, count in pairs]
    return found


class Tally:
    """Counts by problem.

    Attributes:
        problems: By problem: its id, or the number of its start where it has none.
        lost: Problems of which an episode does not count, by the same keys; all of them may be lost.
        statuses: How many calls went how, over all episodes that count.
        statuses_correct: The same over correct episodes.
        injected: The same for faults that a wrapper injected.
        ends: How many episodes ended how, those that do not count included.
        failed: Episodes that ended ``unavailable``.
        cancelled: Episodes that ended ``cancelled``.
        unusable: Episodes with a reply that could not be played.
        usage: What all episodes took together, where the player counts it: requests, tokens, money.
        judged: Whether a judge was asked about chains.
        cause: Why the first episode that failed or is unusable is so, in a line; empty if there is none.
    """

    def __init__(self) -> None:
        self.problems: dict[Hashable, ProblemTally] = {}
        self.lost: set[Hashable] = set()
        self.statuses: Counter[str] = Counter()
        self.statuses_correct: Counter[str] = Counter()
        self.injected: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.failed = self.cancelled = self.unusable = 0
        self.usage: dict[str, float] = {}
        self.judged = False
        self.cause = ""

    @classmethod
    def of(cls, entries: Iterable[EpisodeEntry]) -> Tally:
        """The tally of what a run's folder holds of an evaluation."""
        tally = cls()
        for entry in entries:
            tally.add(entry.episode, About.of_line(entry.episode.group, entry.more))
        return tally

    @property
    def count(self) -> int:
        """Episodes, those that do not count included."""
        return self.ends.total()

    @property
    def episodes(self) -> int:
        """Those of them that count."""
        return sum(problem.episodes for problem in self.problems.values())

    def add(self, episode: Episode, about: About | None = None) -> None:
        """Add an episode.

        Args:
            episode: The episode.
            about: What its line says beside it; ``None`` for one that is alone in its start.
        """
        about = About(start=self.count) if about is None else about
        self.ends[episode.end] += 1
        self.failed += episode.failed
        if episode.failed or episode.unusable:
            self.cause = self.cause or cause_of(episode)
        self.cancelled += episode.cancelled
        self.unusable += episode.unusable
        for name, value in episode.usage.items():
            self.usage[name] = self.usage.get(name, 0.0) + value
        key: Hashable = episode.problem_id or about.start
        if not episode.available:
            self.lost.add(key)
            return
        statuses = [str(status) for status in episode.statuses]
        self.statuses.update(statuses)
        self.injected.update(map(str, episode.injected))
        if episode.correct:
            self.statuses_correct.update(statuses)
        self.judged = self.judged or about.judged
        problem = self.problems.get(key)
        if problem is None:
            source = about.source or episode.task
            problem = self.problems[key] = ProblemTally(source, about.difficulty)
        _count(problem, episode, about)


_AT = {name: place for place, name in enumerate(COUNTS)}


def _count(problem: ProblemTally, episode: Episode, about: About) -> None:
    correct = float(episode.correct)
    calls, tokens = float(episode.tool_calls), float(episode.policy_tokens)
    errors = float(sum(status.is_error for status in episode.statuses))
    coded = float(calls > 0)
    of_episode = {
        "correct": correct,
        "episodes": 1.0,
        "reward": episode.reward,
        "errors": errors,
        "calls": calls,
        "errors_correct": correct * errors,
        "calls_correct": correct * calls,
        "turns": float(episode.turns),
        "broken": float(episode.answer_tags != 1),
        "coded": coded,
        "coded_correct": correct * coded,
        "tokens": tokens,
        # A player that knows no tokens says 0.
        "tokened": float(tokens > 0),
        "repeated": repetition(episode),
        "cut": float(episode.end in CUT_ENDS),
    }
    for name, value in of_episode.items():
        problem.counts[_AT[name]] += value
    for name, value in episode.rewards.items():
        total, count = problem.rewards.get(name, (0.0, 0))
        problem.rewards[name] = (total + value, count + 1)
    if episode.correct:
        problem.chains += bool(about.chain)
        problem.unjudged += about.chain is None
    elif episode.answer is not None:
        answer = " ".join(episode.answer.split())
        problem.wrong[answer] = problem.wrong.get(answer, 0) + 1


def repetition(episode: Episode) -> float:
    """Share of the four-word sequences of the policy's turns that stood in the episode before, 0 to 1.

    ``1 - unique / all`` (seq-rep-4 of Welleck et al., Neural Text Generation with Unlikelihood Training,
    arXiv 1908.04319, section 6.1), over words between white space, within turns.
    """
    total = 0
    seen: set[tuple[str, ...]] = set()
    for message in episode.messages:
        if message.role == "assistant":
            words = message.content.split()
            total += max(0, len(words) - _WORDS + 1)
            seen.update(zip(*(words[shift:] for shift in range(_WORDS)), strict=False))
    return 1.0 - len(seen) / total if total else 0.0
