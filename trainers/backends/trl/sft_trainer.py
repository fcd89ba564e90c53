"""``SftTrainer``: TRL's ``SFTTrainer`` in small passes, without values that the loss does not need.

A batch has traces drawn at random. It is divided into passes of rows of similar length, each as wide as its longest
row, and the head computes log-probabilities of the policy's tokens alone. transformers can instead sample batches of
traces of similar length. This also saves padding, but the traces then become shorter from step to step: a training of
few steps ends with the shortest traces, and the model forgets the behaviour in the long ones. Entropy and token
accuracy, which TRL computes over the vocabulary at every token, are left out. The loss and its gradients are those of
the whole batch. With any sharding, every process computes the same number of passes, since a pass gathers the weights
of all processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import Trainer
from trl import SFTTrainer

from rstar2_env.core.files.full_disk import naming_full_disk

from ...record.checkpoints import drop_old, mark_unfinished, mark_whole
from .loss.flops import peak_memory
from .loss.forward import causal, set_head
from .loss.packing import even_out, pack
from .sharded_trainer import ShardedTrainer
from .sharding.choice import Sharding

_KEEP = 2


class SftTrainer(ShardedTrainer, SFTTrainer):
    """Trains on rows, logs speed and memory, and marks checkpoints once they are complete.

    No run resumes from a checkpoint without the mark.

    Args:
        max_pass_rows: Maximum number of rows of one forward and backward pass; ``None`` sets no limit.
        max_pass_tokens: Maximum number of tokens of a pass, padding included; a longer row has its own pass. ``None``
            sets no limit.
        sharding: The sharding of the weights and the optimizer state.
        **kwargs: Arguments of ``trl.SFTTrainer``.
    """

    def __init__(
        self,
        *,
        max_pass_rows: int | None = None,
        max_pass_tokens: int | None = None,
        sharding: Sharding = "none",
        **kwargs: Any,
    ) -> None:
        super().__init__(sharding=sharding, **kwargs)
        self._most_rows = math.inf if max_pass_rows is None else max_pass_rows
        self._most_tokens = math.inf if max_pass_tokens is None else max_pass_tokens
        self.model_accepts_loss_kwargs = True  # ``compute_loss`` divides by the number of tokens of the whole batch
        set_head(self.model, 1.0, ())
        self._tokens, self._since = 0, time.perf_counter()

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        """Compute the gradients of a batch, pass by pass; return its loss."""
        lengths = inputs["attention_mask"].sum(1)
        self._tokens += int(lengths.sum())
        loss = torch.zeros((), device=self.accelerator.device)
        passes = list(self._passes(inputs, lengths.tolist()))
        steps = self.accelerator.gradient_state.sync_gradients
        for number, part in enumerate(passes, start=1):
            part["share"] = part["attention_mask"].sum() / lengths.sum()
            last = number == len(passes)
            self.accelerator.gradient_state._set_sync_gradients(steps and last)
            # Data parallelism averages gradients in the last pass, which also adds those of the others.
            with nullcontext() if last else self.accelerator.no_sync(model):
                loss += super().training_step(model, part, num_items_in_batch)
        return loss

    def _passes(self, inputs: dict[str, Any], lengths: list[int]) -> Iterator[dict[str, Any]]:
        """Divide a padded micro-batch of rows with these ``lengths`` into passes, each as wide as its longest row.

        The widths are multiples of ``args.pad_to_multiple_of`` if it is set.
        """
        multiple = self.args.pad_to_multiple_of or 1
        widths = [math.ceil(length / multiple) * multiple for length in lengths]
        batches = pack(widths, self._most_tokens, self._most_rows)
        if self.sharding != "none":
            # No filler is needed: accelerate gives every process the same number of rows.
            batches = even_out(batches, max(self.ranks.gather(len(batches))))
        for rows in batches:
            width = max(widths[row] for row in rows)
            yield {name: inputs[name][rows, :width] for name in ("input_ids", "labels", "attention_mask")}

    def _option(self, name: str) -> str:
        return name.rpartition(".")[2]  # the options of a cold start have no groups

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss of a pass: its labels' negative log-likelihood, divided by the number of labels in the batch.

        A mixture of experts adds its load-balancing loss, weighted by the share of the batch's tokens in this pass.
        """
        given = {"input_ids": inputs["input_ids"], "labels": inputs["labels"], "fused_lm_head": True}
        if self.aux_loss_enabled:
            given["output_router_logits"] = True
        if self.aux_loss_enabled or not causal(model):
            given["attention_mask"] = inputs["attention_mask"]  # padding must neither count as load nor be attended to
        outputs = model(**given)
        loss = -outputs.log_probs.sum() / max(1, int(num_items_in_batch))
        if self.args.average_tokens_across_devices:
            loss = loss * self.accelerator.num_processes  # the tokens of all processes are counted, gradients averaged
        if self.aux_loss_enabled:
            share = inputs.get("share", 1.0) / self.current_gradient_accumulation_steps
            loss = loss + self.router_aux_loss_coef * outputs.aux_loss * share
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log metrics; for a step, add this process's tokens per second since the last step, and its peak memory."""
        if "loss" in logs:
            now = time.perf_counter()
            logs["speed/train_tokens_per_second"] = self._tokens / max(now - self._since, 1e-9)
            logs["memory/peak_gib"] = peak_memory() / 2**30
            self._tokens, self._since = 0, now
        Trainer.log(self, logs, start_time)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        run = Path(self._get_output_dir(trial))
        folder = run / f"checkpoint-{self.state.global_step}"
        if self.accelerator.is_main_process:
            mark_unfinished(folder)
        with naming_full_disk(folder):
            Trainer._save_checkpoint(self, model, trial)  # TRL's own method adds a generic model card
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            mark_whole(folder, self.accelerator.num_processes)
            drop_old(run, _KEEP)
