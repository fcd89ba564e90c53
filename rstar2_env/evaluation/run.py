"""Play many episodes in parallel and report their figures, with standard errors and intervals.

Covered: agents and models as players, several samples of each start, a result file that can be resumed, interruption.
Not covered: the choice of problems (``play.plan``), how episodes are played (``play.agent_crew``,
``play.policy_crew``), the figures (``figures``), several evaluations in one run (``suite``), and evaluation during
training.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.parts import read_part
from rstar2_env.core.progress import progress as show_progress
from rstar2_env.core.stop_request import Stop
from rstar2_env.core.telemetry import recording
from rstar2_env.env.agent import AnyAgent
from rstar2_env.env.named import EnvSpec
from rstar2_env.evaluation.figures.boundary import boundary_sets, check_shared, tally_of_run
from rstar2_env.evaluation.judges.base import ChainJudge, judge_of
from rstar2_env.evaluation.options import (
    EvaluationKeywords,
    EvaluationOptions,
    EvaluationParts,
    make_parts,
    options_from_keywords,
)
from rstar2_env.evaluation.play.agent_crew import AgentCrew
from rstar2_env.evaluation.play.crew import Crew, TaskJudge, drive
from rstar2_env.evaluation.play.ledger import Ledger
from rstar2_env.evaluation.play.log import EvalLog, check_out, check_resumed
from rstar2_env.evaluation.play.plan import Task, plan_of, source_of
from rstar2_env.evaluation.play.played import PlayedEpisode
from rstar2_env.evaluation.play.policy_crew import LoadedModel, PolicyCrew, PolicyOptions, load_policy, policy_record
from rstar2_env.evaluation.play.repeats import repeats_of
from rstar2_env.evaluation.play.scores import EpisodeScores
from rstar2_env.evaluation.play.scores import recorded as recorded_scores
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.problems import ProblemSource, load_problems
from rstar2_env.wrappers.make import make_env
from rstar2_env.wrappers.registry import recorded

if TYPE_CHECKING:
    from rstar2_env.rollout import EnvFactory

ProgressCallback: TypeAlias = Callable[[Episode, int, int], None]
"""Function that is called after every episode, in the thread that called ``evaluate``. Its arguments are the episode,
the number of finished episodes and the number of planned episodes."""

PLAY_AGAIN = 8
"""Number of episodes that ``repeat=True`` plays a second time; the help of ``rstar2 eval --repeat`` states it."""


def evaluate(
    env_id: EnvSpec,
    agent: str | Callable[[], AnyAgent] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep: bool = True,
    progress: ProgressCallback | bool = True,
    stop: Stop | None = None,
    **options: Unpack[EvaluationKeywords],
) -> EvalResult:
    """Evaluate an agent or a model in an environment.

    The number of workers does not change the results of an agent whose turns depend only on its seeds. After Ctrl-C, an
    agent stops after its current turn and a model completes the episodes in flight; then the results so far are
    returned, with ``interrupted`` set. A second Ctrl-C does not wait.

    Args:
        env_id: A Gymnasium id, the user's own code, or a class or function, as ``make_env`` takes it.
        agent: See ``EvaluationOptions``.
        out: File that gets one JSON line per episode, or, without a suffix, the folder of a run (see
            docs/run-folder.md); ``None`` writes nothing.
        resume: Continue ``out`` where it ends; episodes that do not count (``Episode.available``) are played again.
        overwrite: Replace ``out`` if it exists.
        keep: Keep the episodes in memory if there is no ``out``. With neither ``keep`` nor ``out``, the result has only
            figures.
        progress: Show the progress on stderr or in a notebook; or a callback after every episode.
        stop: Once a stop is requested, no further episode begins, as after Ctrl-C.
        **options: Fields of ``EvaluationOptions``: ``model``, ``problems``, ``n``, ``k``, ``seed``, ...

    Raises:
        ConfigurationError: An option is unknown; the options contradict each other; ``episodes`` is missing although
            the source is unlimited; or the player cannot provide an input that a score needs.
        UnknownNameError: An option names something that does not exist: an agent, an engine, a source of problems, ...
        Exception: An error that the agent or the environment raised, with a note on the problem; ``out`` keeps the
            episodes played so far.
    """
    asked = options_from_keywords(agent, options)
    if out is not None:
        check_out(out, resume=resume, overwrite=overwrite, inputs=[asked.model, asked.problems, asked.baseline, env_id])
    parts = make_parts(env_id, asked)
    if resume and out is not None:
        check_resumed_model(out, env_id, asked, parts)
    n, seed = asked.n, asked.seed
    before = None if asked.baseline is None else tally_of_run(asked.baseline)
    with ExitStack() as opened:
        opened.enter_context(recording())  # entered first, so that it closes last and sends all data
        report = opened.enter_context(show_progress("playing", show=progress is True and asked.agent != "human"))
        crew = open_crew(env_id, asked, parts, opened)
        source = source_of(crew.env, asked.problems, asked.split)
        scoring = EpisodeScores(parts.scores, samples=n, source=source, lacking=crew.lacking) if parts.scores else None
        plan = plan_of(source, asked.episodes, seed, n)
        if before is not None:
            check_shared(before, (plan[start * n].problem_id for start in range(plan.starts)), name=str(asked.baseline))
        run = run_record(asked, parts, crew.record, source)
        ledger = Ledger(
            plan, judged=parts.judge is not None, keep=keep and out is None, mark=PLAY_AGAIN if asked.repeat else 0
        )
        log = None
        if out is not None:
            whole = 1 if scoring is None else scoring.together
            log = EvalLog(
                out, run=run, plan=plan, resume=resume, overwrite=overwrite, taken=ledger.restore, whole=whole
            )
            opened.callback(log.close)
            ledger.log = log
        taken_up, began = ledger.count, time.perf_counter()
        report(taken_up, len(plan))
        counted = correct = 0

        def take(played: PlayedEpisode) -> None:
            nonlocal counted, correct
            ledger.take(played)
            counted += played.episode.available
            correct += played.episode.available and played.episode.correct
            report(ledger.count, len(plan), f"{100 * correct / counted:.1f} % correct" if counted else "")
            if callable(progress):
                progress(played.episode, ledger.count, len(plan))

        drive(crew, ledger.missing(), len(plan) - taken_up, take, Stop() if stop is None else stop, scoring)
        seconds = time.perf_counter() - began
        interrupted = ledger.count < len(plan)
        result = EvalResult(
            run=run,
            tally=ledger.tally,
            ks=parts.ks,
            planned=len(plan),
            played=ledger.count - taken_up,
            seconds=seconds,
            interrupted=interrupted,
            determinism=crew.determinism,
            repeated=repeats_of(crew, plan, ledger.first) if asked.repeat and not interrupted else None,
            boundary=None if before is None else boundary_sets(before, ledger.tally, name=str(asked.baseline)),
            file=None if log is None else log.path,
            kept=ledger.episodes,
        )
        if log is not None:
            log.end(result.log_figures(), result.to_dict(), interrupted=interrupted)
    return result


def open_crew(env_id: EnvSpec, asked: EvaluationOptions, parts: EvaluationParts, opened: ExitStack) -> Crew:
    """Create the player of an evaluation (agents or a loaded model), and register it with ``opened`` for closing.

    Args:
        env_id: The environment, as ``make_env`` takes it.
        asked: Options of the evaluation.
        parts: The parts that ``make_parts`` made from the options.
        opened: Closes the player, and the model if this function loaded it.
    """
    make: EnvFactory = partial(make_env, env_id, wrappers=parts.wrappers, **parts.env_options)
    crew: Crew
    if parts.policy is not None:
        crew = PolicyCrew(make, _loaded(asked, parts.policy, opened), parts.policy, _judging(parts.judge))
    else:
        assert asked.agent is not None  # ``make_parts`` checked it
        workers = asked.workers or min(32, 4 * (os.cpu_count() or 1))
        crew = AgentCrew(make, asked.agent, parts.agent_options, workers, _judging(parts.judge))
    opened.callback(crew.close)
    return crew


def check_resumed_model(
    out: str | os.PathLike[str], env_id: EnvSpec, asked: EvaluationOptions, parts: EvaluationParts
) -> None:
    """Check that the file to resume belongs to this evaluation, before the model is loaded.

    Args:
        out: See ``evaluate``.
        env_id: The environment, as ``make_env`` takes it.
        asked: Options of the evaluation; nothing is checked unless they name a model that must be loaded.
        parts: The parts that ``make_parts`` made from the options.

    Raises:
        ConfigurationError: The file belongs to another evaluation.
    """
    if parts.policy is None or asked.model is None or isinstance(asked.model, LoadedModel):
        return
    if asked.problems is None:
        with closing(make_env(env_id, wrappers=parts.wrappers, **parts.env_options)) as env:
            source = source_of(env, None, asked.split)
    else:
        source = load_problems(asked.problems, split=asked.split)
    player = policy_record(os.fspath(asked.model), asked.engine, parts.policy)
    check_resumed(out, run_record(asked, parts, player, source))


def run_record(
    asked: EvaluationOptions, parts: EvaluationParts, player: Mapping[str, Any], source: ProblemSource | None
) -> dict[str, Any]:
    """Return environment, player and options as JSON values; an evaluation resumes only a file with the same values.

    Args:
        asked: Options of the evaluation.
        parts: The parts that ``make_parts`` made from the options.
        player: The record of the crew that plays; see ``Crew.record``.
        source: Source of the problems; ``None`` if the environment chooses them.
    """
    return {
        "env": parts.env.name,
        "env_options": dict(parts.env_options),
        **({"wrappers": recorded(parts.wrappers)} if parts.wrappers else {}),
        **player,
        **({} if asked.judge is None else {"judge": str(read_part(asked.judge, "judge"))}),
        **({"scores": recorded_scores(asked.scores)} if parts.scores else {}),
        "problems": source.name if source else "",
        "split": source.split if source else "",
        "seed": asked.seed,
        "n": asked.n,
    }


def _loaded(asked: EvaluationOptions, policy: PolicyOptions, opened: ExitStack) -> LoadedModel:
    """Return the model that the options name; if this function loads it, ``opened`` closes it."""
    if isinstance(asked.model, LoadedModel):
        return asked.model
    assert asked.model is not None  # a policy plays
    loaded = load_policy(
        os.fspath(asked.model), policy, engine=asked.engine, engine_options=asked.engine_options or {}, seed=asked.seed
    )
    opened.callback(loaded.close)
    return loaded


def _judging(judge: ChainJudge | None) -> TaskJudge | None:
    if judge is None:
        return None

    def judged(task: Task, episode: Episode) -> bool | None:
        problem = task.problem
        return judge_of(judge, problem.question if problem else "", problem.answer if problem else None, episode)

    return judged
