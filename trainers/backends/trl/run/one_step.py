"""``one_step``: compute the loss and the gradients of one optimizer batch as in a complete training run.

Use it to compare this backend with another, such as the reference backend. With several processes, each process passes
its own rows and receives the gradients of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PrinterCallback, TrainerCallback

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row

from ..arguments import arguments
from ..loss.forward import ReferenceModel
from ..loss.objective import Objective
from ..loss.pending_rows import BatchLayout
from ..trainer import CollectorTrainer


@dataclass(frozen=True, slots=True)
class OneStep:
    """The result of one optimizer step.

    Attributes:
        loss: The loss over all processes.
        gradients: Gradient of each trained parameter, by its name in the model; parameters without a gradient are left
            out.
        figures: Sum and count of each metric, on this process.
        trainer: The trainer, after its step.
    """

    loss: float
    gradients: dict[str, Tensor]
    figures: dict[str, tuple[float, float]]
    trainer: CollectorTrainer


@dataclass
class _Given:
    rows: list[Row]
    groups: list[list[Episode]] = field(default_factory=list)

    def collect(self, step: int) -> _Given:
        """Return the same rows at every step."""
        return self


class _Gradients(TrainerCallback):
    """Copies the gradients before the optimizer uses them."""

    def __init__(self) -> None:
        self.found: dict[str, Tensor] = {}

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Copy the gradients."""
        for name, parameter in kwargs["model"].named_parameters():
            if parameter.grad is not None:
                self.found[name.removeprefix("module.")] = parameter.grad.detach().clone()


def one_step(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Row],
    objective: Objective,
    *,
    folder: str,
    tokens_per_device: int = 8192,
    share_prefixes: bool = True,
    reference: PreTrainedModel | None = None,
    temperature: float = 1.0,
    peft_config: Any = None,
    **options: Any,
) -> OneStep:
    """Take one optimizer step on rows with ``CollectorTrainer``.

    Args:
        model: The policy; it is trained.
        tokenizer: The policy's tokenizer.
        rows: The rows of this process.
        objective: The loss.
        folder: A folder that transformers may write to.
        tokens_per_device: Maximum number of tokens in one micro-batch, padding included.
        share_prefixes: Whether tokens that rows share are computed only once; see ``BatchLayout``.
        reference: The reference model; ``None`` uses the policy before the step (without its adapters, if it has any).
        temperature: Temperature of the log-probabilities.
        peft_config: peft's configuration of adapters to train; ``None`` trains the weights.
        **options: Further fields of ``GRPOConfig``, such as ``gradient_checkpointing``.
    """
    compared = None
    if "reference" in objective.needs:
        adapted = peft_config is not None or hasattr(model, "peft_config")
        source = model if reference is None and not adapted else reference
        dtype = torch.bfloat16 if options.get("bf16") else model.dtype
        compared = ReferenceModel(source, dtype, temperature, autocasts=True)
    defaults = {
        "max_steps": 1,
        "report_to": [],
        "save_strategy": "no",
        "use_cpu": not torch.cuda.is_available(),
        "bf16": False,
        "gradient_checkpointing": False,
        "max_grad_norm": 0.0,
        "logging_strategy": "no",
    }
    gradients = _Gradients()
    trainer = CollectorTrainer(
        collector=_Given(list(rows)),
        objective=objective,
        shape=BatchLayout(tokens_per_device, share_prefixes=share_prefixes),
        reference=compared,
        model=model,
        processing_class=tokenizer,
        args=arguments(folder, **{**defaults, "temperature": temperature, **options}),
        peft_config=peft_config,
        callbacks=[gradients],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    figures = trainer.sums.take()
    loss = sum(trainer.ranks.gather(figures["loss"][0]))
    return OneStep(loss, gradients.found, figures, trainer)
