"""``RunRecorder``: writes a run's folder: its batches, its evaluations, its saved models and its events."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from rstar2_env.core.episode import Episode
from rstar2_env.core.files.full_disk import naming_full_disk
from rstar2_env.core.files.json_lines import write_json
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.files.outputs import files_in, list_files
from rstar2_env.core.row import FloatArray, Row
from rstar2_env.core.run_folder import RunWriter, TokensEntry
from rstar2_env.core.run_folder.layout import VERDICT_FILE
from rstar2_env.problems import ProblemSource

from ....options.config import run_record
from ....record.checkpoints import step_of
from ....record.model_card import write_cards
from ....record.verdict import RunVerdict
from ....step.batch import Batch
from ....step.problem_facts import about_problems
from ..players import problem_source
from ..trainer import CollectorTrainer
from .parts import RunSetup


class RunRecorder:
    """Writes the folder of a run; every process has a recorder, and the first also writes the shared files.

    Args:
        setup: The setup of the run.
        files: Writes the files.
        trainer: Provides the number of finished optimizer steps, logs metrics, and saves models.
        tokenizer: The tokenizer, which is saved with each model.
        problems: The training problems.
    """

    def __init__(
        self,
        setup: RunSetup,
        files: RunWriter,
        trainer: CollectorTrainer,
        tokenizer: PreTrainedTokenizerBase,
        problems: ProblemSource | None,
    ) -> None:
        self._setup, self._files, self._trainer, self._tokenizer = setup, files, trainer, tokenizer
        self._first = not setup.ranks.rank
        self._train_facts = functools.cache(lambda: about_problems(problems))
        self._eval_facts = functools.cache(lambda: about_problems(problem_source(setup.config, "eval")))

    def begin(self, *notes: str) -> None:
        """Begin the run's folder, or continue it, before any process writes to it; all processes call it.

        Args:
            *notes: Events to write at the beginning.
        """
        setup = self._setup
        resumed = None if setup.checkpoint is None else step_of(setup.checkpoint)
        setup.ranks.wait()  # until every process has read the folder
        self._files.begin(run_record(setup.name, setup.config), resumed=resumed, processes=setup.ranks.size)
        if self._first:
            for note in notes:
                self._files.event("note", resumed or 0, text=note)
        setup.ranks.wait()

    def write_batch(self, step: int, batch: Batch) -> None:
        """Write the episodes of a batch, with the number of the first optimizer step that trains on it.

        Args:
            step: Number of optimizer steps that are finished, so that the first step on this batch is ``step + 1``.
            batch: The batch.
        """
        self._files.train(step + 1, batch.groups, batch.decisions, extra=self._train_facts())

    def write_held_out(self, episodes: Sequence[Episode]) -> None:
        """Write the episodes that all processes played in an evaluation; only the first process writes them."""
        if self._first:
            self._files.held_out(self._step, episodes, extra=self._eval_facts())

    def log_evaluation(self, figures: dict[str, float]) -> None:
        """Log the metrics of an evaluation, named ``eval/...``, and write them as an event."""
        self._trainer.log_apart(figures)
        self.event("evaluation", figures={name.removeprefix("eval/"): value for name, value in figures.items()})

    def save(self, folder: str) -> None:
        """Save the model and its tokenizer; all processes call it.

        An earlier model in the folder is replaced once all files of the new model are written.
        """
        whole, ranks = Path(folder), self._setup.ranks
        partial = whole.with_name(f"{whole.name}.partial")
        earlier = whole.with_name(f"{whole.name}.earlier")
        if self._first:
            list_files(whole.parent, folders={partial.name: None, earlier.name: None})
            shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed
        ranks.wait()
        with naming_full_disk(partial):
            self._trainer.save_model(str(partial))
            if self._first:
                self._tokenizer.save_pretrained(partial)
        if self._first:
            list_files(whole.parent, folders={whole.name: files_in(partial)})
            if whole.exists():
                whole.rename(earlier)
            partial.rename(whole)
            shutil.rmtree(earlier, ignore_errors=True)
            self.event("saved", path=whole.name)
        ranks.wait()

    def finish(self, event: str, verdict: RunVerdict | None = None, **more: str) -> None:
        """Write the verdict, then the event that ends the run (with further fields ``more``), then the model cards."""
        if verdict is not None and self._first:
            list_files(self._setup.folder, VERDICT_FILE)
            write_json(self._setup.folder / VERDICT_FILE, jsonable(verdict.record()))
        self.event(event, **more)
        if self._first:
            write_cards(self._setup.folder)

    def event(self, name: str, **more: object) -> None:
        """Write an event with its fields ``more`` and the number of finished optimizer steps."""
        self._files.event(name, self._step, **more)

    @property
    def _step(self) -> int:
        return int(self._trainer.state.global_step)


def write_tokens(files: RunWriter, step: int, row: Row, member: int, logps: FloatArray | None) -> None:
    """Write the tokens of a row that was trained on; see ``on_trained`` of ``CollectorTrainer``.

    Args:
        files: Writes the files.
        step: The optimizer step, from 1.
        row: The row that was trained on.
        member: Index of the row's episode in its group.
        logps: Log-probabilities of the row's completion before the first update on the rollout; ``None`` if they were
            not computed.
    """
    sampled = np.array(row.logprobs)
    entry = TokensEntry(
        step=step,
        group=row.episode.group,
        member=member,
        prompt_ids=row.prompt_ids,
        completion_ids=row.completion_ids,
        mask=row.mask,
        logprobs=row.logprobs,
        advantages=np.broadcast_to(row.advantage, len(row.mask)).tolist(),
        shown_ids=row.episode.shown_ids,
        ratios=[] if logps is None else np.exp((logps - sampled) * np.array(row.mask)).tolist(),
    )
    files.tokens([entry])
