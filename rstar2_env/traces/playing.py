"""Makes traces by rejection sampling: a model or an agent plays problems, and right episodes become traces.

Problems are played in rounds: in each round, every problem without enough qualifying episodes is played once. Therefore
the same arguments give the same traces for any number of workers, if the player gives the same turns for the same
seeds. All episodes are written to a file next to the traces, and a resumed run continues from this file. Covered:
budgets, resume, traces from worked solutions for the problems without a qualifying episode. Not covered: the conditions
on an episode (``rstar2_env.traces.selection``), traces made only from worked solutions (``rstar2_env.traces.writer``).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, Unpack

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import begin_lines, plain
from rstar2_env.core.files.outputs import check_file
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.progress import progress as show_progress
from rstar2_env.core.stop_request import Stop
from rstar2_env.core.telemetry import recording
from rstar2_env.env.agent import AnyAgent
from rstar2_env.env.named import EnvSpec
from rstar2_env.evaluation.figures.tally import About, difficulty_of
from rstar2_env.evaluation.options import EvaluationKeywords, make_parts, options_from_keywords
from rstar2_env.evaluation.play.crew import drive
from rstar2_env.evaluation.play.log import EvalLog, check_out, read_episodes
from rstar2_env.evaluation.play.plan import EvaluationPlan, Task, plan_of, source_of
from rstar2_env.evaluation.play.played import PlayedEpisode
from rstar2_env.evaluation.run import check_resumed_model, open_crew, run_record
from rstar2_env.problems import Problem
from rstar2_env.traces.selection import ProblemTries, TraceSelection, balanced, played_trace
from rstar2_env.traces.writer import Trace, generate_traces

Worked: TypeAlias = Literal["none", "unsolved", "all"]
"""Problems that also get a trace from their worked solution: none, problems without a qualifying episode, or all."""

TracesProgress: TypeAlias = Callable[[int, int, int], None]
"""Function called after every episode with three counts of episodes.

The counts are: episodes played so far, episodes to play by the end of this round, and episodes that qualify as traces.
"""


@dataclass(frozen=True)
class TriesOptions(CheckedOptions):
    """Budgets of playing, and the use of worked solutions.

    Attributes:
        tries: Largest number of episodes of one problem; a problem with enough qualifying episodes
            (``TraceSelection.per_problem``) is not played again.
        max_total_episodes: Largest number of episodes, including those of the interrupted run that is resumed.
        max_total_tokens: Number of generated tokens after which no further episode begins, including those of the
            interrupted run that is resumed.
        worked: Problems that also get a trace from their worked solution: ``"none"``, ``"unsolved"`` (problems without
            a qualifying episode) or ``"all"``.
    """

    tries: int = option(8, least=1)
    max_total_episodes: int | None = option(None, least=1)
    max_total_tokens: int | None = option(None, least=1)
    worked: Worked = "none"


@dataclass(frozen=True, repr=False)
class PlayedTraces:
    """The result of ``play_traces``.

    Attributes:
        out: The file of traces; it is not written if there are no traces.
        episodes_file: The file of all episodes.
        traces: The traces, as written.
        problems: Number of problems.
        solved: Number of problems with a qualifying episode.
        episodes: Number of episodes, including those of the interrupted run that was resumed.
        tokens: Number of generated tokens of these episodes; 0 if the player does not count tokens.
        reasons: For each reason, the number of episodes and traces that were not kept.
        stopped_by: ``"interruption"``, ``"max_total_episodes"`` or ``"max_total_tokens"``; empty if each problem has
            enough qualifying episodes or no tries left.
    """

    out: Path
    episodes_file: Path
    traces: tuple[Trace, ...]
    problems: int
    solved: int
    episodes: int
    tokens: int
    reasons: Mapping[str, int]
    stopped_by: str

    def __repr__(self) -> str:
        """The counts, without the traces."""
        return (
            f"PlayedTraces(out={str(self.out)!r}, traces={len(self.traces)}, problems={self.problems}, "
            f"solved={self.solved}, episodes={self.episodes}, stopped_by={self.stopped_by!r})"
        )


def episodes_file(out: Path) -> Path:
    """Return the file next to the traces that holds all episodes: ``traces.episodes.jsonl`` for ``traces.jsonl``."""
    return out.with_name(f"{out.stem}.episodes.jsonl")


def play_traces(
    env: EnvSpec,
    agent: str | Callable[[], AnyAgent] | None = None,
    *,
    out: str | os.PathLike[str],
    tries: TriesOptions | None = None,
    selection: TraceSelection | None = None,
    worked_options: Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: TracesProgress | bool = True,
    stop: Stop | None = None,
    **options: Unpack[EvaluationKeywords],
) -> PlayedTraces:
    """Let a model or an agent play problems, and write the episodes that earn the reward as traces.

    Args:
        env: The environment, as ``make_env`` takes it.
        agent: The agent that plays, unless ``model`` is given; see ``EvaluationOptions``.
        out: File of the traces, one JSON line each. All episodes go to ``episodes_file(out)``.
        tries: Budgets, and the use of worked solutions.
        selection: Conditions on the episodes that become traces.
        worked_options: Fields of ``TraceOptions`` for traces from worked solutions.
        resume: Continue an interrupted run. The budgets, the selection and the use of worked solutions may change.
        overwrite: Replace the files if they exist.
        progress: Show the progress on stderr or in a notebook; or a callback after every episode.
        stop: Once a stop is requested, no further episode begins; the traces so far are written.
        **options: Fields of ``EvaluationOptions``: ``model``, ``problems``, ``episodes`` (the number of problems), ....
            ``split`` is ``"train"`` by default.

    Raises:
        ConfigurationError: A file exists or belongs to another run; an option is invalid; or there is a token budget,
            and the player does not count tokens.
        Exception: An error that the agent or the environment raised; the file of episodes keeps the episodes so far.
    """
    tries = TriesOptions() if tries is None else tries
    selection = TraceSelection() if selection is None else selection
    path = Path(out)
    asked = options_from_keywords(agent, {"split": "train", **options, "n": tries.tries})
    _check_files(path, resume=resume, overwrite=overwrite)
    stop = Stop() if stop is None else stop
    with ExitStack() as opened:
        opened.enter_context(recording())  # entered first, so that it closes last and sends all data
        report = opened.enter_context(show_progress("playing", show=progress is True))
        parts = make_parts(env, asked)
        if resume:
            check_resumed_model(episodes_file(path), env, asked, parts)
        crew = open_crew(env, asked, parts, opened)
        source = source_of(crew.env, asked.problems, asked.split)
        plan = plan_of(source, asked.episodes, asked.seed, tries.tries)
        run = run_record(asked, parts, crew.record, source)
        state = _State(plan, tries, selection)
        log = EvalLog(episodes_file(path), run=run, plan=plan, resume=resume, overwrite=overwrite, taken=state.restore)
        opened.callback(log.close)

        def take(played: PlayedEpisode) -> None:
            state.take(played.episode)
            report(state.count, state.planned, f"{state.kept} kept")
            if callable(progress):
                progress(state.count, state.planned, state.kept)
            task = played.task
            about = About(task.start, "" if task.problem is None else task.problem.source, difficulty_of(task.problem))
            log.write(played.episode, task, about=about, seconds=round(played.seconds, 6))

        for sample in range(tries.tries):
            tasks = state.begin_round(sample)
            drive(crew, state.within_budget(tasks), len(tasks), take, stop)
            if stop() or state.spent:
                break
        stopped_by = "interruption" if stop() and state.unfinished else state.spent
    traces = state.traces(episodes_file(path))
    reasons = state.reasons
    if tries.worked != "none" and not stop():
        problems = state.without_traces() if tries.worked == "unsolved" else state.first_tasks()
        traces += _worked(
            problems,
            partial(
                generate_traces,
                env,
                seed=asked.seed,
                env_options=parts.env_options,
                wrappers=parts.wrappers,
                dropped=lambda problem, reason: reasons.update([reason]),
                **(worked_options or {}),
            ),
            state.problems,
        )
    kept = balanced([trace.level for trace in traces], selection.shares, asked.seed)
    if dropped := len(traces) - len(kept):
        reasons["the share of traces of this level was used up"] = dropped
    written = tuple(replace(traces[at], index=number) for number, at in enumerate(kept))
    if written:
        facts = plain({**run, **asdict(selection), "worked": tries.worked})
        begin_lines(path, (json.dumps({**trace.record(), "run": facts}) + "\n" for trace in written)).close()
    elif overwrite:
        path.unlink(missing_ok=True)
    solved = sum(bool(own.kept) for own in state.problems)
    return PlayedTraces(path, log.path, written, plan.starts, solved, state.count, state.tokens, reasons, stopped_by)


def _check_files(path: Path, *, resume: bool, overwrite: bool) -> None:
    check_file(path, resume=resume, overwrite=overwrite, lines=True)
    check_out(episodes_file(path), resume=resume, overwrite=overwrite)
    if resume and path.exists() and not episodes_file(path).exists():
        raise ConfigurationError(
            f"The file {path} cannot be resumed, because the file {episodes_file(path).name} with its "
            "episodes is not in its folder: choose another file, or replace it.",
            option="overwrite",
        )


def _worked(
    tasks: Iterable[Task], write: Callable[[list[Problem]], Generator[Trace, None, None]], tries: Sequence[ProblemTries]
) -> list[Trace]:
    """Write traces from the worked solutions of the tasks' problems; add each problem's success rate and level."""
    starts = {task.problem.id: task for task in tasks if task.problem is not None}
    problems = [task.problem for task in starts.values() if task.problem is not None]
    if not problems:
        return []
    with contextlib.closing(write(problems)) as made:
        found = [(trace, tries[starts[trace.problem_id].start]) for trace in made]
    return [replace(trace, success_rate=own.success_rate, level=own.level) for trace, own in found]


class _State:
    """The episodes of a run so far, grouped by problem.

    Attributes:
        problems: The tries of each problem.
        count: Number of episodes.
        tokens: Number of generated tokens.
        reasons: For each reason, the number of episodes that did not qualify.
        planned: Number of episodes that will be finished at the end of the current round.
        kept: Number of qualifying episodes.
    """

    def __init__(self, plan: EvaluationPlan, tries: TriesOptions, selection: TraceSelection) -> None:
        self.problems = [ProblemTries() for _ in range(plan.starts)]
        self.count = self.tokens = 0
        self.reasons: Counter[str] = Counter()
        self._plan, self._options, self._selection = plan, tries, selection
        self._done: set[int] = set()
        self._begun = self.planned = self.kept = 0

    @property
    def spent(self) -> str:
        """Name of the budget that is spent although problems need further episodes; empty if there is none."""
        episodes, tokens = self._options.max_total_episodes, self._options.max_total_tokens
        if episodes is not None and self._begun >= episodes and self.unfinished:
            return "max_total_episodes"
        return "max_total_tokens" if tokens is not None and self.tokens >= tokens and self.unfinished else ""

    @property
    def unfinished(self) -> bool:
        """Whether a problem needs further episodes and has tries left."""
        return any(True for sample in range(self._options.tries) for _ in self._missing(sample))

    def first_tasks(self) -> Iterator[Task]:
        """Yield the first task (planned episode) of each problem."""
        return (self._plan[start * self._plan.samples] for start in range(self._plan.starts))

    def without_traces(self) -> Iterator[Task]:
        """Yield the first task of each problem that has no qualifying episode."""
        return (task for task in self.first_tasks() if not self.problems[task.start].kept)

    def begin_round(self, sample: int) -> list[Task]:
        """Return the tasks of round ``sample`` (from 0; one episode for each problem) that are still to be played."""
        tasks = [self._plan[index] for index in self._missing(sample)]
        self.planned = self.count + len(tasks)
        return tasks

    def within_budget(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Yield the given tasks until a budget of episodes or tokens is spent."""
        episodes, tokens = self._options.max_total_episodes, self._options.max_total_tokens
        for task in tasks:
            if (episodes is not None and self._begun >= episodes) or (tokens is not None and self.tokens >= tokens):
                return
            self._begun += 1
            yield task

    def restore(self, episode: Episode, about: About) -> None:
        """Count an episode that was read from the file of episodes; ``about`` is not used."""
        self._begun += 1
        self._add(episode)

    def take(self, episode: Episode) -> None:
        """Count an episode that was played.

        Raises:
            ConfigurationError: There is a token budget, and the player does not count its tokens.
        """
        self._add(episode)
        if self._options.max_total_tokens is not None and episode.available and not _tokens(episode):
            raise ConfigurationError(
                "The player does not report the number of its tokens, so max_total_tokens cannot be "
                "applied: limit the number of episodes instead.",
                option="max_total_episodes",
            )

    def traces(self, path: Path) -> list[Trace]:
        """Return the traces of the qualifying episodes, in the order in which the episodes were planned."""
        kept = {number: own for own in self.problems for number in own.kept}
        found = {one.group: one for one in read_episodes(path) if one.group in kept}
        return [played_trace(found[number], number, kept[number]) for number in sorted(kept)]

    def _missing(self, sample: int) -> Iterator[int]:
        for start, own in enumerate(self.problems):
            index = start * self._plan.samples + sample
            if len(own.kept) < self._selection.per_problem and index not in self._done:
                yield index

    def _add(self, episode: Episode) -> None:
        self._done.add(episode.group)
        self.count += 1
        self.tokens += _tokens(episode)
        reason = self.problems[episode.group // self._plan.samples].add(episode, self._selection)
        self.kept += reason is None
        if reason is not None:
            self.reasons[reason] += 1


def _tokens(episode: Episode) -> int:
    return int(episode.usage.get("completion_tokens", episode.policy_tokens))
