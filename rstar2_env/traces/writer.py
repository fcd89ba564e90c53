"""Turns problems into supervised tool-use traces, for the cold start of a model that has never called a tool.

A trace is a whole conversation. It is written from a problem's ``program``, its worked ``calculations``, as in GSM8K
("16-3-4=9"), or its ``expression``, and then replayed through a real environment, so its tool results are real.
Deliberate mistakes can be added, each kind independently of the others, so that reinforcement learning has room to
improve. A trace is dropped if its replay differs from the plan, above all if a trace with a right answer earns no
reward. Not covered: problems without a worked solution (``rstar2_env.traces.playing``), training (``rstar2 sft``).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, Count, Rule, Seed, call_with_options, checked, option
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.stop_request import Stop, in_order
from rstar2_env.core.telemetry import recording
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.env.named import EnvSpec
from rstar2_env.env.options import env_options as typed_env_options
from rstar2_env.evaluation.play.episode import play_episode, python_call
from rstar2_env.problems import FiniteSource, Problem, ProblemSpec, choices, load_problems
from rstar2_env.problems.perturb import miscopied
from rstar2_env.traces.mistakes import CALL_MISTAKES, FORMAT_MISTAKES, FailingCall, failing_call
from rstar2_env.wrappers.make import make_env
from rstar2_env.wrappers.registry import read_wrappers

TraceEnv: TypeAlias = "EnvSpec | gym.Env[str, str]"
Dropped: TypeAlias = Callable[[Problem, str], None]
"""Function called for every dropped trace, with its problem and the reason."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One conversation to learn from.

    Attributes:
        index: Number of the trace, from 0: in ``generate_traces`` among all requested traces, including dropped traces;
            in ``play_traces`` among the written traces.
        problem_id: Id of the problem.
        messages: Messages of the system, the user, the policy and the tool, in order.
        reward: Reward of the environment.
        end: How the episode ended; see ``Episode.end``.
        statuses: Status of each call.
        answer_tags: Number of answers that the policy marked with the dialect's answer tags.
        call_mistake: The mistake in the first call, which the next call corrects; ``None`` if there is none.
        wrong: Whether a wrong number was copied into the answer.
        format_mistake: The format mistake of the answer; ``None`` if there is none.
        source: ``worked`` if the trace was written from a worked solution, ``played`` if a model or an agent played it.
        success_rate: Share of the player's episodes on this problem that were right, in [0, 1]; ``None`` if nothing
            played it.
        level: Difficulty of the problem for the player: ``easy``, ``medium``, ``hard``; empty if nothing played it.
    """

    index: int
    problem_id: str
    messages: tuple[Message, ...]
    reward: float
    end: str
    statuses: tuple[ToolStatus, ...]
    answer_tags: int
    call_mistake: str | None
    wrong: bool
    format_mistake: str | None
    source: Literal["worked", "played"] = "worked"
    success_rate: float | None = None
    level: str = ""

    def record(self) -> dict[str, Any]:
        """Return the trace as JSON values; ``messages`` have the format of chat templates."""
        messages = [message.record() for message in self.messages]
        return {**asdict(self), "messages": messages, "statuses": [str(status) for status in self.statuses]}


@dataclass(frozen=True)
class TraceOptions(CheckedOptions):
    """Format of traces, and rates of mistakes in them; the three rates are independent.

    Attributes:
        error_rate: Share of traces whose first call fails and is then corrected.
        wrong_rate: Share of traces that copy a wrong number into the answer.
        format_error_rate: Share of traces whose answer breaks the format.
        call_mistakes: Kinds of mistakes to make in the first call: keys of
            ``rstar2_env.traces.mistakes.CALL_MISTAKES``.
        format_mistakes: Kinds of format mistakes to make in the answer: keys of ``FORMAT_MISTAKES``.
        one_call: Run all calculations in one program instead of one per turn.
        reasons: Begin each turn with the text of the problem's ``solution`` that precedes the turn's calculation.

    Raises:
        ConfigurationError: A rate is not in [0, 1], or a mistake is unknown.
    """

    error_rate: float = option(0.0, least=0, most=1)
    wrong_rate: float = option(0.0, least=0, most=1)
    format_error_rate: float = option(0.0, least=0, most=1)
    call_mistakes: Sequence[Annotated[str, Rule(choices=tuple(CALL_MISTAKES))]] = option(tuple(CALL_MISTAKES), least=1)
    format_mistakes: Sequence[Annotated[str, Rule(choices=tuple(FORMAT_MISTAKES))]] = option(
        tuple(FORMAT_MISTAKES), least=1
    )
    one_call: bool = False
    reasons: bool = True


@checked
def generate_traces(
    env: TraceEnv,
    problems: ProblemSpec,
    *,
    episodes: Count | None = None,
    seed: Seed = 0,
    split: str = "train",
    workers: Count | None = None,
    dropped: Dropped | None = None,
    start: int = 0,
    stop: Stop | None = None,
    env_options: Mapping[str, Any] | None = None,
    wrappers: str | Sequence[PartSpec] = (),
    **options: Any,
) -> Generator[Trace, None, None]:
    """Write traces and replay them concurrently.

    The same arguments give the same traces in the same order, for any number of workers. Each of the three rates in
    ``TraceOptions`` chooses traces independently: another ``error_rate``, for example, does not change which traces
    have a wrong number or a wrong format in their answer.

    Args:
        env: A Gymnasium id, ``"./file.py:Name"``, a class or function, as for ``make_env``; or an environment (further
            environments are made from its ``spec``; the given environment stays open).
        problems: Problems, as for ``load_problems``.
        episodes: Number of traces to write, including dropped traces; ``None`` writes one for each problem of a finite
            source.
        seed: Seed of the choice of problems, of the mistakes and of the episodes.
        split: Split of the problems, if the source has splits.
        workers: Number of environments, each in a thread; by default four per CPU core, at most 32.
        dropped: Called with every dropped trace.
        start: Number (from 0) of the first trace to write; earlier traces already exist.
        stop: Once a stop is requested, traces in progress are finished and no new traces are started.
        env_options: Options of the environment, unless ``env`` is an environment.
        wrappers: Wrappers of every environment, innermost first, as for ``make_env``, unless ``env`` is an environment.
        **options: Fields of ``TraceOptions``.

    Yields:
        The traces whose replay went as planned; all others are dropped.

    Raises:
        ConfigurationError: An option is out of its range; an unlimited source needs ``episodes``.
    """
    chosen = call_with_options("writer of traces", TraceOptions, options)
    source = load_problems(problems, split=split)
    if episodes is None and not isinstance(source, FiniteSource):
        raise ConfigurationError(
            f"The source {source.name} generates problems without end: give the number of traces to write.",
            option="episodes",
        )
    tasks = list(source) if episodes is None else itertools.islice(choices(source, seed=seed), episodes)
    count = max(0, (len(source) if isinstance(source, FiniteSource) and episodes is None else episodes or 0) - start)
    workers = min(32, 4 * (os.cpu_count() or 1)) if workers is None else workers
    make: Callable[[], gym.Env[str, str]] | None
    if not isinstance(env, gym.Env):
        make = partial(make_env, env, wrappers=read_wrappers(wrappers), **typed_env_options(env, env_options))
    elif env_options or wrappers:
        raise ConfigurationError(
            "The options env_options and wrappers do not apply to an environment that already exists: omit them."
        )
    else:
        make = None if env.spec is None else partial(gym.make, env.spec)
    numbered = itertools.islice(enumerate(tasks), start, None)
    stop = Stop() if stop is None else stop
    # This function checks the arguments when it is called; the generator that it returns writes traces on demand.
    given = env if isinstance(env, gym.Env) else None
    return _generate(given, make, numbered, chosen, seed, min(workers, count), dropped, stop)


def _generate(
    given: gym.Env[str, str] | None,
    make: Callable[[], gym.Env[str, str]] | None,
    problems: Iterable[tuple[int, Problem]],
    options: TraceOptions,
    seed: int,
    workers: int,
    dropped: Dropped | None,
    stop: Stop,
) -> Generator[Trace, None, None]:
    envs: queue.SimpleQueue[gym.Env[str, str]] = queue.SimpleQueue()
    made: list[gym.Env[str, str]] = []
    if given is not None:
        envs.put(given)

    def write(task: tuple[int, Problem]) -> Trace | str:
        own = envs.get()
        try:
            return write_trace(own, task[1], options, seed=seed, index=task[0])
        finally:
            envs.put(own)

    try:
        while make is not None and envs.qsize() < workers:
            made.append(make())
            envs.put(made[-1])
        results = in_order(write, problems, workers=workers, ahead=4 * workers, stop=stop)
        with recording(), contextlib.closing(results):
            for (_, problem), trace in results:
                if isinstance(trace, Trace):
                    yield trace
                elif dropped is not None:
                    dropped(problem, trace)
    finally:
        for one in made:
            # After an immediate stop, an environment may still be running in its thread.
            if not stop.at_once:
                one.close()


def write_trace(
    env: gym.Env[str, str], problem: Problem, options: TraceOptions, *, seed: int, index: int
) -> Trace | str:
    """Write one trace and replay it.

    Args:
        env: The environment that replays the trace.
        problem: The problem that the trace solves.
        options: Options of the trace.
        seed: Seed of all traces.
        index: Number of this trace, from 0; with ``seed`` it determines all random draws.

    Returns:
        The trace, or the reason why it was dropped.
    """
    writer = _Writer(options, make_dialect(getattr(env.unwrapped, "dialect", "rstar2")), seed, index)
    if not _programs(problem, options):
        return "the problem has no program, no calculations and no expression"
    episode = play_episode(env, writer, seed=_entropy(seed, index, 3), problem=problem)
    fault = writer.fault(episode)
    if fault is not None:
        return fault
    return Trace(
        index=index,
        problem_id=problem.id,
        messages=tuple(episode.messages),
        reward=episode.reward,
        end=episode.end,
        statuses=tuple(episode.statuses),
        answer_tags=episode.answer_tags,
        call_mistake=writer.failing.kind if writer.failing else None,
        wrong=writer.wrong,
        format_mistake=writer.format_mistake,
    )


class _Writer:
    """An agent that plays one trace: it receives the problem, and makes the requested mistakes."""

    needs_problem: Literal[True] = True

    def __init__(self, options: TraceOptions, dialect: Dialect, seed: int, index: int) -> None:
        self._options = options
        self._dialect = dialect
        # A random stream for each kind of mistake: the draws of one do not affect the others.
        self._rngs = [np.random.default_rng(_entropy(seed, index, stream)) for stream in range(3)]
        self.failing: FailingCall | None = None
        self.wrong = False
        self.format_mistake: str | None = None
        self._turns: list[str] = []

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int, problem: Problem) -> None:
        """Write all turns of the episode in advance, and store them in reverse order."""
        options, (call_rng, wrong_rng, format_rng) = self._options, self._rngs
        programs = _programs(problem, options)
        reasons = _reasons(problem, len(programs)) if options.reasons else [""] * (len(programs) + 1)
        turns = [python_call(self._dialect, info["tools"], program) for program in programs]
        if call_rng.random() < options.error_rate:
            self.failing = failing_call(
                programs[0], self._dialect, info["tools"], call_rng, tuple(options.call_mistakes)
            )
            if self.failing is not None:
                turns.insert(0, self.failing.turn)
                reasons.insert(1, "")
        self.wrong = bool(wrong_rng.random() < options.wrong_rate)
        answer = self._dialect.format_answer(miscopied(problem.answer, wrong_rng) if self.wrong else problem.answer)
        if format_rng.random() < options.format_error_rate:
            answer = self._spoil(answer, format_rng)
        turns.append(answer)
        self._turns = [self._with_reason(*pair) for pair in zip(reasons, turns, strict=True)][::-1]

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next turn."""
        # No turn is left only if the answer was read as a call; an empty turn then ends the episode.
        return self._turns.pop() if self._turns else ""

    def fault(self, episode: Episode) -> str | None:
        """Describe how the replayed episode differs from the planned trace; ``None`` if it does not differ."""
        if not episode.available:
            return "the environment was not available"
        statuses = list(episode.statuses)
        if self.failing is not None and (not statuses or statuses.pop(0) not in self.failing.statuses):
            return f"the call that was made to fail with the mistake {self.failing.kind} did not fail in this way"
        if any(status is not ToolStatus.OK for status in statuses):
            return f"a call that should work was reported as {', '.join(map(str, statuses))}"
        earns = not self.wrong and (self.format_mistake is None or FORMAT_MISTAKES[self.format_mistake].earns)
        if episode.correct is not earns:
            return f"the answer should have been {'right' if earns else 'wrong'}, but it earned {episode.reward:g}"
        return None

    def _spoil(self, answer: str, rng: np.random.Generator) -> str:
        kinds = tuple(self._options.format_mistakes)
        for at in rng.permutation(len(kinds)):
            spoilt = FORMAT_MISTAKES[kinds[int(at)]].spoil(answer)
            if spoilt is not None:
                self.format_mistake = kinds[int(at)]
                return spoilt
        return answer

    def _with_reason(self, reason: str, turn: str) -> str:
        if not reason:
            return turn
        return f"<reason>{reason}</reason>\n{turn}" if self._dialect.name == "rstar2" else f"{reason}\n{turn}"


def has_worked_solution(problem: Problem) -> bool:
    """Return whether a problem has ``program``, ``expression``, ``calculations``, or calculations in ``solution``."""
    return bool(_programs(problem, TraceOptions()))


def _programs(problem: Problem, options: TraceOptions) -> list[str]:
    if program := problem.meta.get("program"):
        return [str(program)]
    expression = problem.meta.get("expression")
    lines = [expression] if expression else [line.partition("=")[0] for line in _calculations(problem)]
    programs = [f"print({line})" for line in lines]
    return ["\n".join(programs)] if options.one_call and programs else programs


def _calculations(problem: Problem) -> Sequence[str]:
    """Return the problem's calculations, or else the calculations marked in its solution, as in GSM8K's files."""
    given: Sequence[str] | None = problem.meta.get("calculations")
    solution = str(problem.meta.get("solution") or "")
    return [found[2:-2] for found in _CALCULATION.findall(solution)] if given is None else given


def _reasons(problem: Problem, programs: int) -> list[str]:
    """Return the texts of the solution before each program and after the last.

    All texts are empty if the number of calculations marked in the solution differs from the number of the problem's
    calculations. If there is not one program for each calculation, only the first and the last text are kept.
    """
    parts = _CALCULATION.split(str(problem.meta.get("solution") or ""))
    if len(parts) == 1 or len(_calculations(problem)) != len(parts) - 1:
        return [""] * (programs + 1)
    # In "She makes 9 * 2 = $<<9*2=18>>18", the "= $" before the calculation is dropped.
    parts = [part.strip().rstrip("=$ ") for part in parts]
    return parts if programs == len(parts) - 1 else [parts[0], *[""] * (programs - 1), parts[-1]]


def _entropy(seed: int, index: int, stream: int) -> int:
    return int(np.random.SeedSequence(entropy=seed, spawn_key=(index, stream)).generate_state(1, np.uint64)[0])


_CALCULATION = re.compile(r"<<[^>]*>>")
