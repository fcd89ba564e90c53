"""``CollectorTrainer``: TRL's GRPO trainer, with the batches of a collector and the loss of an ``Objective``.

TRL, transformers and accelerate provide the optimizer, the schedule, precision, data parallelism, checkpoints and
logging. This class overrides the input of the loss (``get_train_dataloader``, ``_prepare_inputs``), the loss
(``training_step``), and TRL's own logging and saving. One item of the data loader is one optimizer step. Tested with
TRL 1.16.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from datasets import Dataset
from torch import Tensor
from transformers import Trainer

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.full_disk import naming_full_disk
from rstar2_env.core.progress import progress
from rstar2_env.core.row import FloatArray, Row
from rstar2_env.core.telemetry import phase_span

from ...losses.mismatch import summary
from ...record.checkpoints import drop_old, mark_unfinished, mark_whole
from ...step.prefetch import Stateful
from ...step.sums import Sums
from .checkpoint_errors import naming_checkpoint
from .loss.flops import flops_of, peak_of
from .loss.forward import ReferenceModel, TokenScores, score, set_head
from .loss.micro_batches import MicroBatch, completion_values, lay_out
from .loss.objective import Objective
from .loss.packing import even_out, pack
from .loss.pending_rows import BatchLayout, PendingRows
from .loss.prefix_sharing import PrefixSharing
from .loss.teacher import Teacher
from .protocols import Collects
from .quick_import import GRPOTrainer
from .run import process_states
from .run.steps import StepNumbers
from .sharded_trainer import ShardedTrainer
from .sharding.choice import Sharding

T = TypeVar("T")


class CollectorTrainer(ShardedTrainer, GRPOTrainer):
    """TRL's GRPO trainer, which trains on the rows of a collector.

    Args:
        collector: Collects the rows of each rollout; may be set later, before training begins.
        objective: The loss.
        shape: Division of rows into optimizer steps and micro-batches.
        reference: The reference model; required if a term of the loss needs it.
        teacher: Gives rows the column ``teacher`` if a term of the loss needs it.
        sharding: The sharding of the weights and the optimizer state.
        begin_from: See ``ShardedTrainer``, which also has ``export_dtype``.
        stateful: Parts whose state each process saves in checkpoints, by name, such as the collector and hooks.
        keep_checkpoints: Number of checkpoints to keep.
        on_trained: Called once for each row of a rollout after its first update, with the step, the row, the index of
            its episode in its group, and the log-probabilities of its completion before the first update on the rollout
            (``None`` if they were not computed).
        **kwargs: Arguments of ``trl.GRPOTrainer``.
    """

    def __init__(
        self,
        *,
        collector: Collects | None = None,
        objective: Objective,
        shape: BatchLayout,
        reference: ReferenceModel | None = None,
        teacher: Teacher | None = None,
        sharding: Sharding = "none",
        begin_from: Path | None = None,
        stateful: Mapping[str, Stateful] | None = None,
        keep_checkpoints: int = 2,
        on_trained: Callable[[int, Row, int, FloatArray | None], None] | None = None,
        **kwargs: Any,
    ) -> None:
        self.collector, self.objective, self.shape, self.teacher = collector, objective, shape, teacher
        self.sums = Sums()
        self.pending: PendingRows | None = None
        self._on_trained, self._keep_checkpoints = on_trained, keep_checkpoints
        self._without_gradient = 0
        self._nothing = False
        # TRL requires a dataset and a reward function; neither is used.
        super().__init__(
            sharding=sharding,
            reference=reference,
            teacher=teacher,
            begin_from=begin_from,
            train_dataset=Dataset.from_dict({"prompt": [""]}),
            reward_funcs=[_no_reward],
            **kwargs,
        )
        self._stateful: dict[str, Stateful] = {
            process_states.SUMS: self.sums,
            "objective": objective,
            **(stateful or {}),
        }
        self.sharing = self._prefix_sharing()
        self.use_head(self.temperature)  # before accelerate wraps the forward method, so that it calls the current head

    def _prefix_sharing(self) -> PrefixSharing:
        if not self.shape.share_prefixes:
            return PrefixSharing()
        teacher = None if self.teacher is None else self.teacher.model
        balanced = "its load-balancing loss counts the tokens of every row" if self.aux_loss_enabled else None
        return PrefixSharing(self.model, *([] if teacher is None else [teacher]), obstacle=balanced)

    def _prepare_for_training(self, max_steps: int, train_dataloader: Any, resume_from_checkpoint: Any) -> Any:
        prepared = super()._prepare_for_training(max_steps, train_dataloader, resume_from_checkpoint)
        exact = self.accelerator.mixed_precision == "no" and self.model.dtype is torch.float32
        self.sharing.check(self.model_wrapped, self.accelerator.device, exact=exact)
        return prepared

    def use_head(self, temperature: float, *outputs: str) -> None:
        """Put the fused head on the policy.

        Args:
            temperature: Temperature of the log-probabilities.
            *outputs: Further outputs, in addition to those that the loss needs; see ``put_head``.
        """
        wanted = {"entropy", *({"mean_logp"} & self.objective.needs), *outputs}
        set_head(self.model, temperature, sorted(wanted), cast=self.args.cast_lm_head_to_fp32)

    def keep_state(self, name: str, part: Stateful) -> None:
        """Register a part whose state checkpoints save and a resume restores; call it before training begins."""
        self._stateful[name] = part

    def get_train_dataloader(self) -> Any:
        """Return the data loader, which yields the numbers of the steps; the rows come from the collector."""
        return StepNumbers(self, self.args.max_steps)

    def training_step(self, model: Any, inputs: dict[str, int], num_items_in_batch: Any = None) -> Tensor:
        """Collect rows if the last rollout is used up, then compute the gradients of one optimizer step.

        Returns:
            This process's share of the loss, times the number of processes; the mean of these values is the loss.
        """
        model.train()
        if hasattr(self.optimizer, "train"):
            self.optimizer.train()
        batches = self._prepare_inputs(inputs)
        started = time.perf_counter()
        # If no process has a gradient, momentum and weight decay must not move the weights either.
        self._nothing = not batches
        self.accelerator.gradient_state._set_sync_gradients(not self._nothing)
        with phase_span("update"):
            loss = self.accumulate(model, batches, self._loss)
        self._account(batches, float(loss), started)
        return loss * self.ranks.size

    def accumulate(
        self, model: Any, batches: Sequence[MicroBatch], loss_of: Callable[[Any, MicroBatch], Tensor]
    ) -> Tensor:
        """Add up the gradients of micro-batches; every process must have the same number of them.

        Args:
            model: The policy, as transformers' training loop wraps it.
            batches: The micro-batches of this process.
            loss_of: Returns a micro-batch's share of the loss; the loss is the sum of the shares on all processes.

        Returns:
            The loss share of this process.
        """
        loss = torch.zeros((), device=self.accelerator.device)
        with progress("updating") as report:
            for number, batch in enumerate(batches, start=1):
                last = number == len(batches)
                self.accelerator.gradient_state._set_sync_gradients(last)
                with nullcontext() if last else self.accelerator.no_sync(model):
                    share = loss_of(model, batch)
                    # Data parallelism averages the processes' gradients, but the loss is their sum.
                    self.accelerator.backward(share * self.ranks.size)
                loss += share.detach()
                report(number, len(batches))
        return loss

    def _prepare_inputs(self, inputs: dict[str, int]) -> list[MicroBatch]:
        """Return the micro-batches of one optimizer step, the same number on every process."""
        if self.pending is None:
            self.pending = self._rollout(inputs["step"])
        pending = self.pending
        rows = pending.batch_rows()
        if self.objective.prepares:
            rows = self._prepared(pending, rows, inputs["step"])
        batches = self.micro_batches(
            rows,
            weights=self.objective.weights(rows, self.ranks),
            old=pending.batch_values("old") if pending.done else None,
            reference=pending.batch_values("reference"),
            old_mean_logp=pending.batch_values("old_mean_logp") if pending.done else None,
            environment_weights=self.objective.environment_weights(rows, self.ranks),
            embeddings=pending.batch_values("embeddings") if "embedding" in self.objective.needs else None,
        )
        if self.aux_loss_enabled:
            self._share(batches)
        return batches

    def _rollout(self, step: int) -> PendingRows:
        assert self.collector is not None, "set it before training begins"
        batch = self.collector.collect(step)
        shape = self.shape
        places = {id(episode): place for group in batch.groups for place, episode in enumerate(group)}
        members = [places.get(id(row.episode), 0) for row in batch.rows]
        pending = PendingRows.dealt(
            batch.rows, members, self.ranks, partial(shape.divide, step), share_prefixes=self.sharing.active
        )
        if "reference" in self.objective.needs:
            self._compare(pending)
        if self.teacher is not None and "teacher" in self.objective.needs:
            self.teacher.add_column(pending.rows, self.score_rows, self.autocast)
        self._store_old(pending)
        return pending

    def _store(
        self,
        pending: PendingRows,
        positions: Sequence[int],
        scorer: Callable[[Any, MicroBatch], Mapping[str, Tensor | None]],
    ) -> None:
        """Compute values of some rows of a rollout without a gradient, and store them; all processes call it together.

        Args:
            pending: The rows of the rollout.
            positions: Positions of the rows to compute.
            scorer: Returns the values of a micro-batch, by a name of ``ROW_VALUES``.
        """
        rows = [pending.rows[position] for position in positions]
        for batch, computed in self.score_rows(rows, scorer):
            pending.store(computed, batch, rows, positions)

    def _store_old(self, pending: PendingRows) -> None:
        """Compute and store the values under the weights that sampled the rollout; call it before any update.

        The values are the log-probabilities of all rows that are not in the first update (which computes the
        log-probabilities of its own rows), and the embeddings of all rows if a term needs them.
        """
        every = range(len(pending.rows))

        def embed(model: Any, batch: MicroBatch) -> dict[str, Tensor | None]:
            return {"embeddings": score(model, batch, self.autocast, embed=True).embedding}

        if "embedding" in self.objective.needs:
            self._store(pending, every, embed)
        if self.shape.minibatches > 1:
            # A process without such rows still takes part in the passes of the others.
            later = sorted(set(every) - set(pending.batches[0]))
            self._store(pending, later, lambda model, batch: _old_values(score(model, batch, self.autocast)))

    def _prepared(self, pending: PendingRows, rows: Sequence[Row], step: int) -> list[Row]:
        """Return the rows with the columns that terms compute from the whole optimizer batch.

        ``step`` seeds the random draws of the terms.
        """
        found: dict[int, FloatArray] = {}
        for batch, values in self.score_rows(rows, lambda model, batch: score(model, batch, self.autocast).logp):
            found |= dict(zip(batch.rows, completion_values(values, batch, rows), strict=True))
        logp = [found[place] for place in range(len(rows))]
        if not pending.done:
            for position, own in zip(pending.batch, logp, strict=True):
                pending.values["old"][position] = own
        old = [known for known in pending.batch_values("old") if known is not None]
        return self.objective.prepare(rows, logp, old, self.ranks, self.shape.draws(step))

    def reset_reference(self) -> None:
        """Make the reference model a copy of the policy, and score the pending rows again.

        Raises:
            ConfigurationError: There is no reference model.
        """
        if self.reference is None:
            raise ConfigurationError(
                "A hook tried to reset the reference model, but no term of the loss uses one: remove the "
                "hook, or add a KL term."
            )
        if self._partitions:
            raise ConfigurationError(
                "With sharding='zero3', the reference model cannot be reset: use sharding='fsdp2' or 'zero2'."
            )
        self.reference.reset(self.model)
        if self.pending is not None and "reference" in self.objective.needs:
            self._compare(self.pending)

    def _compare(self, pending: PendingRows) -> None:
        """Compute the log-probabilities of a rollout's rows under the reference model, and store them."""
        if self.reference is None:
            raise ConfigurationError(
                "A term of the loss needs a reference model, but the trainer was created without one: pass reference=."
            )
        compare, every = self.reference.score, range(len(pending.rows))
        self._store(pending, every, lambda model, batch: {"reference": compare(model, batch, self.autocast)})

    def score_rows(self, rows: Sequence[Row], scorer: Callable[[Any, MicroBatch], T]) -> list[tuple[MicroBatch, T]]:
        """Score rows without a gradient, in the micro-batches of training; all processes call it together.

        Args:
            rows: The rows of this process.
            scorer: Computes the scores, given the policy and a micro-batch, which may be a filler.
        """
        found: list[tuple[MicroBatch, T]] = []
        batches = self.micro_batches(rows, every=self.objective.prepares)
        with torch.no_grad(), progress("scoring tokens") as report:
            for batch in batches:
                self._without_gradient += batch.computed
                found.append((batch, scorer(self.model_wrapped, batch)))
                report(len(found), len(batches))
        return found

    def micro_batches(self, rows: Sequence[Row], *, every: bool = False, **given: Any) -> list[MicroBatch]:
        """Pack rows into micro-batches, the same number on every process.

        Args:
            rows: The rows of this process.
            every: Include rows that have no gradient, because their advantage is 0 and all terms are policy gradients.
            **given: Arguments of ``lay_out``.
        """
        # A row without an advantage has no policy gradient, but it stays in the aggregation's counts.
        all_learn = every or not self.objective.only_policy_gradient
        learns = [at for at, row in enumerate(rows) if all_learn or row.trains]
        budget = self.shape.tokens_per_device
        trees, others = self.sharing.divide([rows[at] for at in learns], budget)
        packed = pack([rows[learns[place]].tokens for place in others], budget)
        separate = [[others[place] for place in batch] for batch in packed]
        count = max(self.ranks.gather(len(trees) + len(separate)))
        separate = even_out(separate, count - len(trees))
        pad, device = self.processing_class.pad_token_id, self.accelerator.device
        return [
            lay_out([learns[place] for place in batch], rows, as_tree=as_tree, pad=pad, device=device, **given)
            for batches, as_tree in ((trees, True), (separate, False))
            for batch in batches
        ]

    def _share(self, batches: Sequence[MicroBatch]) -> None:
        """Set each micro-batch's share of the optimizer batch's tokens, for the load-balancing loss."""
        tokens = [float(batch.attention.sum()) if batch.rows else 0.0 for batch in batches]
        total = self.ranks.sum(np.array([sum(tokens)]))[0]
        for batch, own in zip(batches, tokens, strict=True):
            batch.share = own / max(total, 1.0)

    def _loss(self, model: Any, batch: MicroBatch) -> Tensor:
        embed = "embedding" in self.objective.needs
        scores = score(model, batch, self.autocast, balance=self.aux_loss_enabled, embed=embed)
        pending = self.pending
        assert pending is not None  # ``_prepare_inputs`` has just set it
        if not pending.done and (self.shape.updates > 1 or self._on_trained is not None):
            pending.store(_old_values(scores), batch, pending.batch_rows(), pending.batch)
        loss = self.objective.loss(batch, scores)
        if scores.balance is not None and batch.rows:
            loss = loss + self.router_aux_loss_coef * scores.balance * batch.share
        return loss

    def autocast(self) -> Any:
        """Return a context in which the model computes in the precision of training."""
        return self.accelerator.autocast()

    def _account(self, batches: Sequence[MicroBatch], loss: float, started: float) -> None:
        """Add the metrics of an optimizer step to the running sums, and advance to the next update on the rollout.

        Args:
            batches: The step's micro-batches.
            loss: This process's share of the step's loss.
            started: Value of ``time.perf_counter()`` at the beginning of the step.
        """
        pending = self.pending
        assert pending is not None
        rows = pending.batch_rows()
        figures = self.objective.take_figures()
        seconds = time.perf_counter() - started
        self.sums.merge(figures)
        if self.objective.adapts:
            of_step = Sums()
            of_step.merge(figures)
            self.objective.observe(of_step.take(self.ranks))
        once = float(self.ranks.rank == 0)  # sums are over processes, steps are counted once
        computed = sum(batch.computed for batch in batches)
        trained = sum(row.tokens for row in rows if row.trains)
        real = [rows[position].tokens for batch in batches for position in batch.rows]
        self.sums.add("loss", loss, once)
        self.sums.add("tokens/computed", computed, once)
        self.sums.add("tokens/trained", trained, once)
        self.sums.add("tokens/share_trained", trained, computed)
        self.sums.add("tokens/no_grad", self._without_gradient, once)
        self.sums.add("seconds/train", seconds)
        self.sums.add("speed/train_tokens_per_second", sum(real), seconds / self.ranks.size if real else 0.0)
        # The operations on the tokens of a row that an earlier row shares are not computed.
        shared = [start for batch in batches if batch.tree is not None for start, _ in batch.tree.spans]
        peak, flops, saved = peak_of(self.accelerator), flops_of(self.model, real), flops_of(self.model, shared)
        if peak is not None and flops is not None and saved is not None:
            self.sums.add("speed/mfu", flops - saved, seconds * peak)
        # Turns of an expert have no version of the weights.
        versions = [turn.version for row in rows if not row.episode.off_policy for turn in row.episode.steps]
        self.sums.add("policy/lag", sum(self.state.global_step - version for version in versions), len(versions))
        self._without_gradient = 0
        if self._on_trained is not None and pending.first_pass:
            for place, row, old in zip(pending.batch, rows, pending.batch_values("old"), strict=True):
                self._on_trained(self.state.global_step + 1, row, pending.members[place], old)
        pending.done += 1
        if pending.over:
            self.pending = None

    def _clip_grad_norm(self, model: Any) -> Any:
        return 0.0 if self._nothing else super()._clip_grad_norm(model)

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        return 0.0 if self._nothing else super()._get_grad_norm(model, grad_norm)

    def floating_point_ops(self, inputs: Any) -> int:
        """Return 0: ``inputs`` has a step's number and no tokens to count; see the metric ``speed/mfu``."""
        return 0

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log metrics; for an optimizer step, this package's metrics, over all processes, replace TRL's own.

        This package's metrics cover the time since the previous step's metrics were logged.
        """
        if "loss" in logs:
            logs = {**logs, **summary(self.sums.take(self.ranks))}
        self.log_apart(logs, start_time)

    def log_apart(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log metrics that do not belong to a step, such as metrics of an evaluation."""
        # The data loader's only epoch is the whole run, so the epoch number is not logged.
        epoch, self.state.epoch = self.state.epoch, None
        try:
            Trainer.log(self, logs, start_time)
        finally:
            self.state.epoch = epoch

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        # Tied weights are saved under one name only, so their other names are not missing.
        tied = getattr(self.model, "all_tied_weights_keys", None) or {}
        missing = [name for name in load_result.missing_keys if name not in tied]
        super()._issue_warnings_after_load(load_result._replace(missing_keys=missing))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save a checkpoint without TRL's model card; it is marked complete once every process has written its part."""
        run = Path(self._get_output_dir(trial))
        folder = run / f"checkpoint-{self.state.global_step}"
        if self.accelerator.is_main_process:
            mark_unfinished(folder)
        with progress("saving a checkpoint"), naming_full_disk(folder):
            Trainer._save_checkpoint(self, model, trial)
        states = {name: part.state_dict() for name, part in self._stateful.items()}
        process_states.write(folder, self.ranks.rank, states, self.pending)
        self.ranks.wait()
        if self.accelerator.is_main_process:
            mark_whole(folder, self.ranks.size)
            drop_old(run, self._keep_checkpoints)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        with naming_checkpoint(checkpoint):
            states, self.pending = process_states.read(Path(checkpoint), self.ranks.rank, self.ranks.size)
            for name, part in self._stateful.items():
                part.load_state_dict(states[name])


def _old_values(scores: TokenScores) -> dict[str, Tensor | None]:
    """Return ``old`` and ``old_mean_logp`` (see ``MicroBatch``) from a forward pass before the first update."""
    return {"old": scores.logp, "old_mean_logp": scores.mean_logp}


def _no_reward(**columns: Any) -> list[float]:
    """Never called: TRL's constructor requires a reward function."""
    raise AssertionError("TRL must not compute rewards: the collector computes them.")
