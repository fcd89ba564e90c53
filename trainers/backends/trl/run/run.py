"""``TrlRun``: a training run of a recipe with TRL: takes the steps, evaluates, and closes the run."""

from __future__ import annotations

import logging
import math
from contextlib import closing
from dataclasses import replace
from itertools import chain

import numpy as np

from rstar2_env.core.command.running_command import named_in
from rstar2_env.core.progress import progress, say
from rstar2_env.core.run_folder import read_run
from rstar2_env.core.telemetry import phase_span, recording
from rstar2_env.evaluation.figures.summary import summarize
from rstar2_env.rollout import EpisodeRequest

from ....base import TrainResult
from ....options.config import TrainConfig
from ....ranks import Together
from ....record.verdict import verdict_of
from ....samplers.uniform import Uniform
from ..arguments import quiet
from ..players import problem_ids
from ..trainer import CollectorTrainer
from .callbacks import BEST_DIR, Console, Evaluation
from .interrupt import RolloutAbortedError, Stopping
from .parts import PlayParts, RunSetup
from .recorder import RunRecorder
from .rollouts import Rollouts
from .step_spans import StepSpans

_LOG = logging.getLogger(__name__)

FINAL_DIR = "final"
_EVAL_SEED = 1_000_003
"""Seed of evaluation; a constant, so that every evaluation of every run plays the same problems."""


class TrlRun:
    """One training run of a recipe on TRL; ``build_run`` builds it.

    Args:
        setup: The setup of the run.
        trl: The trainer, which takes the optimizer steps.
        play: Plays and collects episodes.
        rollouts: Supplies the trainer with batches.
        recorder: Writes the run's folder.
        console: Shows the progress.
        stopping: Handles signals.
    """

    def __init__(
        self,
        setup: RunSetup,
        trl: CollectorTrainer,
        play: PlayParts,
        rollouts: Rollouts,
        recorder: RunRecorder,
        console: Console,
        stopping: Stopping,
    ) -> None:
        self.config, self.trl, self.play = setup.config, trl, play
        self._setup, self._rollouts, self._recorder = setup, rollouts, recorder
        self._console, self._stopping = console, stopping

    def train(self) -> TrainResult:
        """Run all steps; see ``Trainer``."""
        folder, recorder = self._setup.folder, self._recorder
        cache = self.play.policy.cache
        notes = fewer_updates(self.config)
        if not self._setup.ranks.rank:
            for note in notes:
                _LOG.warning("%s", note)
        choice = self._setup.choice
        measured = [] if choice is None or not choice.seconds else [choice.line]
        if self.config.optim.learning_rate is None:
            arguments = self.trl.args
            option = named_in("train", "--lr", "optim.learning_rate")
            measured.append(
                f"Learning rate {arguments.learning_rate:g}, chosen by the size of the model, with "
                f"{arguments.warmup_steps:g} warm-up steps; set others with {option} and optim.warmup_steps."
            )
        if not self._setup.ranks.rank and self.config.run.progress:
            for line in measured:
                say(line)
        recorder.begin(*notes, *measured, *([] if cache is None or cache.why is None else [cache.why]))
        evaluation: Evaluation | None = None
        if every := self.config.eval.every:
            evaluation = Evaluation(
                self.evaluate,
                recorder.save,
                recorder.log_evaluation,
                every=every,
                folder=folder,
                interrupted=lambda: self._stopping.agreed,
            )
            self.trl.add_callback(evaluation)
        steps = StepSpans()
        self.trl.add_callback(steps)
        with recording(), closing(steps), self._stopping.listening():
            try:
                self._run_steps()
            except (KeyboardInterrupt, SystemExit):
                recorder.finish("interrupted")
                raise
            except BaseException as error:
                recorder.finish("failed", error=f"{type(error).__name__}: {error}")
                raise
            with progress("saving the model"):
                recorder.save(str(folder / FINAL_DIR))
            result = TrainResult(
                output_dir=folder,
                model_dir=folder / (BEST_DIR if evaluation else FINAL_DIR),
                before=evaluation.before if evaluation else None,
                after=evaluation.after if evaluation else None,
                best_step=evaluation.best_step if evaluation else None,
                history=read_run(folder).metrics(),
            )
            result = replace(result, verdict=verdict_of(folder, result.outcome, result.model_dir))
            recorder.finish("finished", result.verdict)
            self._stopping.end()
        return result

    def _run_steps(self) -> None:
        """Take the steps; if a signal ends the run early, write a checkpoint and raise an exception."""
        aborted = False
        checkpoint = self._setup.checkpoint
        try:
            with quiet():
                self.trl.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        except RolloutAbortedError:
            aborted = True
        except Exception as error:
            if error is not self._rollouts.failed:
                raise
            self._rollouts.stop()
            self._stopping.end_failed(self.trl, error)
            raise
        finally:
            self._rollouts.stop()
            self._console.close()
        if self._stopping.early(self.trl, aborted=aborted):
            self._stopping.end_early(self.trl)

    def evaluate(self) -> dict[str, float]:
        """Play the held-out episodes, divided among the processes; see ``Trainer``."""
        starts = Uniform(problem_ids(self.config, "eval"), _EVAL_SEED).draw(self.config.eval.episodes)
        requests = [
            EpisodeRequest(group=i, seed=start.seed, options=start.options, sampling_seed=_seed(_EVAL_SEED, i))
            for i, start in enumerate(starts)
        ]
        shown = progress("evaluating")
        with shown, phase_span("evaluate"), Together(self._setup.ranks) as ranks, self._rollouts.evaluating():
            episodes = self.play.evaluation.play(requests[ranks.rank :: ranks.size])
            gathered = list(chain.from_iterable(ranks.gather(episodes)))
        self._recorder.write_held_out(gathered)
        figures = summarize(gathered).figures()
        return {name: math.nan if value is None else value for name, value in figures.items()}

    def close(self) -> None:
        """Close the environments, the engines, and the connections to other processes."""
        self._rollouts.stop()
        self.play.close()


def fewer_updates(config: TrainConfig) -> list[str]:
    """Return a list with a warning if a rollout has fewer groups than ``optim.minibatches``; else an empty list."""
    groups, optim = config.rollout.problems_per_step, config.optim
    if optim.minibatches <= groups:
        return []
    return [
        (
            f"A rollout has only {groups} groups, so at most {config.updates} optimizer steps are possible "
            f"instead of {optim.updates_per_rollout * optim.minibatches}: lower optim.minibatches, or set "
            f"rollout.problems_per_step={optim.minibatches} or more."
        )
    ]


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
