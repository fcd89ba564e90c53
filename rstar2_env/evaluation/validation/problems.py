"""Validates an environment for training: checks its verifier on every problem, and its contract.

Covered: four checks of every problem (the gold answer earns 1, a corrupted answer earns 0 or at least does not count as
correct, a malformed turn gets a typed error, a second run gives the same results), and the checks of
``rstar2_env.testing.check_text_env``. Not covered: whether a gold answer is right (only whether it is accepted), and
programs in the sandbox, since the four checks do not run any.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.stop_request import Stop, in_order
from rstar2_env.core.text import html_table, text_table
from rstar2_env.dialects import Dialect
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.reference import playing, reference_of
from rstar2_env.evaluation.validation.bench import BenchEpisode, TextEnv, play_turns, source_of
from rstar2_env.evaluation.validation.players import NO_ANSWER, wrong
from rstar2_env.problems import FiniteSource, Problem, ProblemSource
from rstar2_env.testing.env_checks import check_text_env
from rstar2_env.testing.harness import ConformanceError, typical_call
from rstar2_env.verification import gold_fault

GOLD, CORRUPTED, MALFORMED, REPEATED = CHECKED = ("gold", "corrupted", "malformed", "repeated")
"""Names of the four checks: the gold answer earns 1; a corrupted answer earns 0; a malformed call gets an error; a
second run gives the same results."""

UNREADABLE = "unreadable"
"""Name of a finding that is a fault of the data: the verifier cannot parse the gold answer, only compare its text."""

MOST_TURNS = 200
"""Maximum number of turns of the reference player; a longer episode counts as unsolved."""

_SHOWN = 120


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check that a problem does not pass.

    Attributes:
        problem_id: Id of the problem.
        check: Name of the check, one of ``CHECKED``; ``UNREADABLE`` if the gold answer cannot be parsed.
        detail: The expected and the actual result.
    """

    problem_id: str
    check: str
    detail: str

    def to_dict(self) -> dict[str, str]:
        """Return ``id`` (of the problem), ``check`` and ``detail``."""
        return {"id": self.problem_id, "check": self.check, "detail": self.detail}


@dataclass(slots=True)
class Validation:
    """The result of a validation.

    Attributes:
        env_id: Id of the environment.
        problems: Name of the source of the problems.
        split: Split of the source.
        checked: Number of problems checked.
        faults: Every check that a problem does not pass, in the order of the problems.
        unreadable: Problems whose gold answer the verifier cannot parse. Only the identical text earns the reward, so
            leave these problems out.
        contract: Names of the contract's checks that were performed.
        breaks: Violations of the contract; empty if there are none.
        seconds: Wall-clock seconds.
        interrupted: Whether the validation was stopped before its end.
    """

    env_id: str
    problems: str
    split: str
    checked: int = 0
    faults: list[FailedCheck] = field(default_factory=list)
    unreadable: list[FailedCheck] = field(default_factory=list)
    contract: list[str] = field(default_factory=list)
    breaks: str = ""
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Whether no check failed; unreadable gold answers are faults of the data and do not count."""
        return not self.faults and not self.breaks

    def of(self, check: str) -> list[FailedCheck]:
        """Return the failed checks with the name ``check``, one of ``CHECKED``."""
        return [fault for fault in self.faults if fault.check == check]

    @property
    def title(self) -> str:
        """The environment and the verdict."""
        verdict = "interrupted" if self.interrupted else "all checks passed" if self.ok else "some checks failed"
        return f"{self.env_id}: {verdict}"

    def rows(self) -> dict[str, str]:
        """Return the rows of a summary table: a value for each label."""
        split = f" ({self.split})" if self.split else ""
        rows = {
            "problems checked": f"{self.checked} of {self.problems}{split}" if self.problems else "none",
            "gold answers that do not earn 1": f"{len(self.of(GOLD))}",
            "corrupted answers that earn a reward": f"{len(self.of(CORRUPTED))}",
            "malformed turns without a typed error": f"{len(self.of(MALFORMED))}",
            "problems that differ when repeated": f"{len(self.of(REPEATED))}",
        }
        if self.unreadable:
            rows["gold answers that cannot be parsed"] = f"{len(self.unreadable)} (only the same text earns a reward)"
        if self.contract or self.breaks:
            rows["contract"] = self.breaks or f"{len(self.contract)} checks passed"
        rows["time"] = f"{self.seconds:.1f} s"
        return rows

    def __str__(self) -> str:
        """The summary as a table of two columns."""
        return text_table(self.title, list(self.rows().items()))

    def _repr_html_(self) -> str:
        return html_table(self.title, list(self.rows().items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, as ``rstar2 validate --json`` prints it."""
        return {
            "env_id": self.env_id,
            "problems": self.problems,
            "split": self.split,
            "n": self.checked,
            "ok": self.ok,
            **{check: len(self.of(check)) for check in CHECKED},
            "faults": [fault.to_dict() for fault in self.faults],
            UNREADABLE: [fault.to_dict() for fault in self.unreadable],
            "contract": self.contract,
            "breaks": self.breaks,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
        }


def validate_problems(
    name: str,
    make: Callable[[], gym.Env[str, str]],
    source: ProblemSource | None,
    episodes: int | None,
    seed: int,
    workers: int,
    contract: bool,
    progress: Callable[[int, int | None], None],
    stop: Stop,
) -> Validation:
    """Check an environment problem by problem; see ``validate`` for the arguments.

    Args:
        name: Name of the environment.
        make: Makes an environment.
        source: The problems; ``None`` means the environment's own.
        episodes: As in ``validate``.
        seed: As in ``validate``.
        workers: Number of threads.
        contract: As in ``validate``.
        progress: Called with the number of checked problems and the number of problems to check, if known.
        stop: As in ``validate``.
    """
    began = time.perf_counter()
    with _Checkers(make, seed, stop) as checkers:
        source = source_of(checkers.mine().env) if source is None else source
        if source is None and not contract:
            raise ConfigurationError(
                f"{name} does not have problems of its own: name the problems to check.", option="problems"
            )
        found = Validation(name, source.name if source else "", source.split if source else "")
        chosen, total = _chosen(source, episodes)
        results = in_order(checkers.check, chosen, workers=workers, ahead=8 * workers, stop=stop)
        with contextlib.closing(results):
            for number, (_, faults) in enumerate(results, 1):
                found.faults.extend(fault for fault in faults if fault.check != UNREADABLE)
                found.unreadable.extend(fault for fault in faults if fault.check == UNREADABLE)
                found.checked = number
                progress(number, total)
    found.interrupted = stop()
    if contract and not found.interrupted:
        try:
            found.contract = check_text_env(_named(make, name))
        except ConformanceError as error:
            found.breaks = str(error)
    found.seconds = time.perf_counter() - began
    return found


def _named(make: Callable[[], gym.Env[str, str]], name: str) -> Callable[[], gym.Env[str, str]]:
    """Return a function that calls ``make`` and has the environment's name, so that messages show this name."""

    def environment() -> gym.Env[str, str]:
        return make()

    environment.__qualname__ = name
    return environment


class _Checkers:
    """Keeps an environment with its checker for each thread, and closes all environments at the end."""

    def __init__(self, make: Callable[[], gym.Env[str, str]], seed: int, stop: Stop) -> None:
        self._make, self._seed, self._stop = make, seed, stop
        self._local = threading.local()
        self._all: list[Checker] = []

    def __enter__(self) -> _Checkers:
        return self

    def __exit__(self, *exception: object) -> None:
        for checker in self._all:
            # After an immediate stop, an environment may still be running in its thread.
            if not self._stop.at_once:
                checker.env.close()

    def mine(self) -> Checker:
        found: Checker | None = getattr(self._local, "checker", None)
        if found is None:
            found = self._local.checker = Checker(self._make(), self._seed)
            self._all.append(found)
        return found

    def check(self, problem: Problem) -> list[FailedCheck]:
        return self.mine().check(problem)


class Checker:
    """Checks problems, one by one, in one environment; ``CHECKED`` names the four checks.

    Args:
        env: The environment.
        seed: Seed of every episode.
    """

    def __init__(self, env: gym.Env[str, str], seed: int) -> None:
        self.env = env
        self._seed = seed
        self._broken: dict[tuple[str, str], str] = {}

    @property
    def _dialect(self) -> Dialect | None:
        return getattr(playing(self.env), "dialect", None)

    def check(self, problem: Problem) -> list[FailedCheck]:
        """Return every check that a problem does not pass, and ``UNREADABLE`` if its gold answer cannot be parsed."""
        faults: list[FailedCheck] = []

        def fault(check: str, detail: str) -> None:
            faults.append(FailedCheck(problem.id, check, detail))

        played = self._three(problem)
        gold, corrupted, malformed = played
        if gold.reward != 1.0:
            fault(GOLD, f"the gold answer {_cut(problem.answer)} earned {gold.reward:g}, {_outcome(gold)}")
        # A family may give a wrong answer a partial score, if it does not count as solved.
        if corrupted.reward != 0.0 and corrupted.last.get("correct", True):
            fault(CORRUPTED, f"a corrupted answer earned {corrupted.reward:g}, {_outcome(corrupted)}")
        if (wrong_status := _untyped(malformed)) is not None:
            fault(MALFORMED, wrong_status)
        if _comparable(played) != _comparable(self._three(problem)):
            fault(REPEATED, "the same turns gave a different result when they were played again")
        own = playing(self.env)
        compares = isinstance(getattr(own, "grader", None), GoldGrader)
        if compares and reference_of(own) is None and (why := gold_fault(problem.answer)):
            fault(UNREADABLE, f"the gold answer {_cut(problem.answer)}: {why}")
        return faults

    def _three(self, problem: Problem) -> tuple[BenchEpisode, BenchEpisode, BenchEpisode]:
        return (
            self._play(problem, lambda tools: self._gold_turn(problem)),
            self._play(problem, lambda tools: self._corrupted_turn(problem)),
            self._play(problem, self._malformed_turn, most=1),
        )

    def _play(self, problem: Problem, turn: Callable[[Sequence[Any]], str], most: int = MOST_TURNS) -> BenchEpisode:
        def turns(played: BenchEpisode, env: TextEnv) -> Iterator[str]:
            return (turn(played.info.get("tools") or ()) for _ in range(most))

        return play_turns(self.env, "", self._seed, turns, {"problem": problem})

    def _gold_turn(self, problem: Problem) -> str:
        own = reference_of(playing(self.env))
        return self._write(problem.answer) if own is None else own()

    def _corrupted_turn(self, problem: Problem) -> str:
        if reference_of(playing(self.env)) is not None:
            return NO_ANSWER
        return self._write(wrong(self.env, problem.answer))

    def _malformed_turn(self, tools: Sequence[Any]) -> str:
        """Write a call without its end, in the dialect's syntax; if there is no tool, a turn without an answer."""
        if not tools or self._dialect is None:
            return NO_ANSWER
        key = self._dialect.name, str(tools[0])
        if key not in self._broken:
            self._broken[key] = _broken_call(self._dialect, typical_call(self.env, tools[0]))
        return self._broken[key]

    def _write(self, answer: str) -> str:
        if self._dialect is None:
            raise ConfigurationError(
                f"Answers cannot be written for {self.env}, because it has neither a dialect "
                "(env.unwrapped.dialect) nor a method oracle_turn(). Only its contract can be checked: "
                "use rstar2_env.testing.check_text_env."
            )
        return str(self._dialect.format_answer(answer))


def _untyped(malformed: BenchEpisode) -> str | None:
    """Describe how the environment misreports a malformed turn; ``None`` if it reports the turn correctly."""
    turn = malformed.turns[0]
    if turn.reward != 0.0:
        return f"a turn without an answer earned {turn.reward:g}"
    statuses = [call["status"] for call in turn.info["tool_calls"]]
    if turn.action == NO_ANSWER:
        return f"a turn without a tool call was reported as calls with the statuses {statuses}" if statuses else None
    if turn.truncated and turn.info.get("end") == "turns":
        return None  # the calls of the last allowed turn are not run
    if turn.over or statuses != [str(ToolStatus.MALFORMED)]:
        return (
            f"a malformed call was reported with the statuses {statuses}, {_outcome(malformed)}; expected "
            "['malformed'] in an episode that continues"
        )
    return None


def _broken_call(dialect: Dialect, call: str) -> str:
    """Shorten a call at its end until the dialect reads it as malformed; return the shortened call."""
    for length in range(len(call) - 1, 0, -1):
        read = dialect.calls(call[:length])
        if read and read[0].problem is not None and read[0].problem[0] is ToolStatus.MALFORMED:
            return call[:length]
    return NO_ANSWER


def _chosen(source: ProblemSource | None, episodes: int | None) -> tuple[Iterable[Problem], int | None]:
    if source is None:
        return (), 0
    if isinstance(source, FiniteSource):
        total = len(source) if episodes is None else min(episodes, len(source))
    else:
        total = 100 if episodes is None else episodes
    return islice(source, total), total


def _comparable(several: Iterable[BenchEpisode]) -> list[list[tuple[Any, ...]]]:
    return [[turn.comparable() for turn in played.turns] for played in several]


def _outcome(played: BenchEpisode) -> str:
    """Describe how an episode ended, and the answer that was read, for the detail of a failed check."""
    info = played.last
    if "end" not in info:
        return "the episode continued"
    answer = info.get("answer")
    return f"end: {info['end']}" + ("" if answer is None else f", answer read: {_cut(answer)}")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
