"""Plays many episodes in parallel and says how they went, with standard errors and intervals.

Covered: an agent or a model that plays, several samples of each start, a result file that can be resumed, interruption.
Not covered: the choice of problems (``plan``), the playing itself (``agent_crew``, ``policy_crew``), the figures
(``summary``, ``figures``), several evaluations in one run (``suite``), and evaluation within training.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeAlias

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Seed, checked
from rstar2_env.core.options.parts import PartSpec, read_part
from rstar2_env.core.stop import Stop
from rstar2_env.env.agent import AnyAgent
from rstar2_env.env.named import EnvSpec, find_env
from rstar2_env.env.options import env_options as typed_env_options
from rstar2_env.evaluation.figures.boundary import boundary_sets, check_shared, tally_of_run
from rstar2_env.evaluation.figures.intervals import check_ks
from rstar2_env.evaluation.judges.base import ChainJudge, judge_of, make_judge
from rstar2_env.evaluation.play.agent_crew import AgentCrew, MakeEnv, typed_agent_options
from rstar2_env.evaluation.play.crew import Crew, TaskJudge, drive
from rstar2_env.evaluation.play.ledger import Ledger
from rstar2_env.evaluation.play.log import EvalLog, check_out
from rstar2_env.evaluation.play.plan import Task, plan_of, source_of
from rstar2_env.evaluation.play.played import PlayedEpisode
from rstar2_env.evaluation.play.policy_crew import LoadedModel, PolicyCrew, PolicyOptions, load_policy, policy_options
from rstar2_env.evaluation.play.repeats import repeats_of
from rstar2_env.evaluation.play.scores import EpisodeScores, ScoreSpec, read_scores
from rstar2_env.evaluation.play.scores import recorded as recorded_scores
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.problems import ProblemSpec
from rstar2_env.wrappers.make import make_env
from rstar2_env.wrappers.registry import read_wrappers, recorded

Progress: TypeAlias = Callable[[Episode, int, int], None]
"""Called in the caller's thread after every episode: the episode, how many are done, how many there will be."""

PLAY_AGAIN = 8
"""How many episodes ``repeat=True`` plays a second time."""


@checked
def evaluate(
    env_id: EnvSpec,
    agent: str | Callable[[], AnyAgent] | None = None,
    *,
    model: str | os.PathLike[str] | LoadedModel | None = None,
    engine: str = "transformers",
    engine_options: Mapping[str, Any] | None = None,
    model_options: Mapping[str, Any] | PolicyOptions | None = None,
    problems: ProblemSpec | None = None,
    split: str = "test",
    episodes: Count | None = None,
    n: Count = 1,
    k: Sequence[int] | None = None,
    seed: Seed = 0,
    workers: Count | None = None,
    env_options: Mapping[str, Any] | None = None,
    wrappers: str | Sequence[PartSpec] = (),
    agent_options: Mapping[str, Any] | None = None,
    judge: PartSpec | None = None,
    scores: str | Sequence[ScoreSpec] = (),
    baseline: str | os.PathLike[str] | None = None,
    repeat: bool = False,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep: bool = True,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> EvalResult:
    """Let an agent or a model play an environment.

    Results of agents are the same for the same arguments, however many workers there are. Ctrl-C ends the episodes of
    agents after their turn, and those of models at their end, and returns what there is, with ``interrupted`` set; a
    second one does not wait.

    Args:
        env_id: A Gymnasium id, one's own code, or a class or function, as ``make_env`` takes it.
        agent: Name of an agent, or one's own code, alone or with options ("random_text:length=5"); or a function that
            makes one. Every worker makes its own.
        model: In place of an agent: folder or hub name of a model, or one that ``load_policy`` loaded.
        engine: Name of the engine that the model generates with.
        engine_options: Options of the engine.
        model_options: Fields of ``PolicyOptions``: sampling, token budgets, precision, chat template.
        problems: What ``load_problems`` takes; ``None`` means the source of the environment itself, and one that has
            none chooses by the seed of each episode.
        split: Split of the problems, where the source has splits.
        episodes: How many starts; ``None`` plays every problem of a finite source. Otherwise the problems are chosen at
            random, without repetition until all were played.
        n: Samples: episodes of each start.
        k: The k of pass@k, avg@k and maj@k, none above ``n``; ``None`` means 1 and ``n``.
        seed: Of the choice of problems, of every episode and of the intervals.
        workers: Threads of agents, each with an environment; by default four for each processor, at most 32.
        env_options: Options of the environment.
        wrappers: Put around every environment, the innermost first, as ``make_env`` takes them.
        agent_options: Options of an agent given by name. One that takes a ``dialect`` gets the environment's.
        judge: Judges the chains of thought of right episodes, for CoT-pass@k: a name of ``JUDGES`` or one's own code.
        scores: Reward components that measure each episode beside what the environment paid, as ``make_component``
            takes them; one that needs a judge names its own.
        baseline: The folder or file of another evaluation of the same problems, for the boundary sets.
        repeat: Play the first episodes a second time and say how many came out the same.
        out: File that takes one JSON line an episode, or, without a suffix, the folder of a run; see
            docs/run-folder.md.
        resume: Take up ``out`` where it ends; ``unavailable`` episodes in it are played again.
        overwrite: Replace ``out`` if it exists.
        keep: Keep the episodes in memory where there is no ``out``; without either, there are only figures.
        progress: Called after every episode.
        stop: Once a stop is requested, nothing new begins, as after Ctrl-C.

    Raises:
        ConfigurationError: The options do not fit together; an unlimited source needs ``episodes``; a score needs
            what whoever plays does not have.
        UnknownNameError: No agent, engine, judge, environment part or family has that name.
        Exception: Whatever the agent or the environment raised, with a note on the problem; ``out`` keeps what was
            done.
    """
    ks = check_ks(k, n)
    env = find_env(env_id)
    env_options = typed_env_options(env, env_options)
    wrappers = read_wrappers(wrappers)
    asked = None if judge is None else make_judge(judge)
    before = None if baseline is None else tally_of_run(baseline)
    components = read_scores(scores, None if model is None else policy_options(model_options))
    if out is not None:
        check_out(out, resume=resume, overwrite=overwrite)
    with ExitStack() as opened:
        make: MakeEnv = partial(make_env, env_id, wrappers=wrappers, **env_options)
        crew: Crew
        if model is not None:
            if agent is not None or agent_options:
                raise ConfigurationError("An agent plays, or a model: leave one of them out.", option="agent")
            options = policy_options(model_options)
            loaded = (
                model
                if isinstance(model, LoadedModel)
                else load_policy(
                    os.fspath(model), options, engine=engine, engine_options=engine_options or {}, seed=seed
                )
            )
            if loaded is not model:
                opened.callback(loaded.close)
            crew = PolicyCrew(make, loaded, options, _judging(asked))
        elif agent is None:
            raise ConfigurationError("Nobody plays: name an agent or a model.", option="agent", value="NAME")
        else:
            workers = min(32, 4 * (os.cpu_count() or 1)) if workers is None else workers
            crew = AgentCrew(make, agent, typed_agent_options(agent, agent_options), workers, _judging(asked))
        opened.callback(crew.close)
        source = source_of(crew.env, problems, split)
        scoring = EpisodeScores(components, samples=n, source=source, lacking=crew.lacking) if components else None
        plan = plan_of(source, episodes, seed, n)
        if before is not None:
            check_shared(before, (plan[start * n].problem_id for start in range(plan.starts)), name=str(baseline))
        run: dict[str, Any] = {
            "env": env.name,
            "env_options": dict(env_options),
            **({"wrappers": recorded(wrappers)} if wrappers else {}),
            **crew.record,
            **({} if judge is None else {"judge": str(read_part(judge, "judge"))}),
            **({"scores": recorded_scores(scores)} if components else {}),
            "problems": source.name if source else "",
            "split": source.split if source else "",
            "seed": seed,
            "n": n,
        }
        ledger = Ledger(plan, judged=asked is not None, keep=keep and out is None, mark=PLAY_AGAIN if repeat else 0)
        log = None
        if out is not None:
            whole = 1 if scoring is None else scoring.together
            log = EvalLog(
                out, run=run, plan=plan, resume=resume, overwrite=overwrite, taken=ledger.take_up, whole=whole
            )
            opened.callback(log.close)
            ledger.write_to(log)
        taken_up, began = ledger.count, time.perf_counter()

        def take(played: PlayedEpisode) -> None:
            ledger.take(played)
            if progress:
                progress(played.episode, ledger.count, len(plan))

        drive(crew, ledger.missing(), len(plan) - taken_up, take, Stop() if stop is None else stop, scoring)
        seconds = time.perf_counter() - began
        interrupted = ledger.count < len(plan)
        result = EvalResult(
            run=run,
            tally=ledger.tally,
            ks=ks,
            planned=len(plan),
            played=ledger.count - taken_up,
            seconds=seconds,
            interrupted=interrupted,
            determinism=crew.determinism,
            repeated=repeats_of(crew, plan, ledger.first) if repeat and not interrupted else None,
            boundary=None if before is None else boundary_sets(before, ledger.tally, name=str(baseline)),
            file=None if log is None else log.path,
            kept=ledger.episodes,
        )
        if log is not None:
            log.end(result.log_figures(), result.to_dict(), interrupted=interrupted)
    return result


def _judging(judge: ChainJudge | None) -> TaskJudge | None:
    if judge is None:
        return None

    def judged(task: Task, episode: Episode) -> bool | None:
        problem = task.problem
        return judge_of(judge, problem.question if problem else "", problem.answer if problem else None, episode)

    return judged
