"""``ShardedTrainer``: base class for TRL trainers whose weights and optimizer state may be sharded.

FSDP2 shards the module in place when the trainer is made; accelerate does not change it, since it is marked as already
prepared. With any sharding, checkpoints hold shards (``shards``), so a run may resume with a different number of
processes or a different kind of sharding. Exports are gathered tensor by tensor into an ordinary folder of
transformers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from torch import Tensor
from transformers import TrainerState
from transformers.trainer import SCHEDULER_NAME, TRAINER_STATE_NAME

from rstar2_env.core.errors import ConfigurationError

from .arguments import WarmsUp
from .checkpoint_errors import naming_checkpoint
from .loss.forward import ReferenceModel
from .ranks import AccelerateRanks
from .sharding import shards
from .sharding.choice import Sharding
from .sharding.earlier_optimizer import OptimizerLayout, check_fits, whole_state
from .sharding.fsdp2 import shard
from .sharding.torch_state import TorchState, whole
from .sharding.zero_state import ZeroState

_REFERENCE = "reference.pt"
"""File of the reference model in an unsharded checkpoint; it exists only after a reset."""
_GROUPS = "optimizer_groups.pt"
"""File of the optimizer's hyperparameters (learning rates, decays) in a checkpoint."""


class ShardedTrainer(WarmsUp):
    """Mixin that adds sharding to a TRL trainer; a subclass also inherits from a TRL trainer.

    Args:
        sharding: The sharding of the weights and the optimizer state.
        reference: The reference model, if there is one.
        teacher: The teacher, if there is one; it is placed and sharded like the reference model, and never changes.
        export_dtype: Precision of the weights of exports; ``None`` keeps the precision of the weights, float32 for
            trained ones. Checkpoints are never rounded.
        begin_from: A checkpoint of an earlier run; this run loads its optimizer state, unless it resumes from a
            checkpoint of its own.
        **kwargs: Arguments of TRL's trainer.

    Raises:
        ConfigurationError: The sharding does not support the options, or the optimizer state does not fit.
    """

    def __init__(
        self,
        *,
        sharding: Sharding,
        reference: ReferenceModel | None = None,
        teacher: ReferenceModel | None = None,
        export_dtype: torch.dtype | None = None,
        begin_from: Path | None = None,
        **kwargs: Any,
    ) -> None:
        self.sharding, self.reference, self._begin_from = sharding, reference, begin_from
        self._export_dtype = export_dtype
        self._optimized: OptimizerLayout | None = None
        frozen = [one for one in (reference, teacher) if one is not None]
        super().__init__(**kwargs)
        self.ranks = AccelerateRanks(PartialState())
        device = self.accelerator.device
        if self._divides and self.args.fp16:
            raise ConfigurationError(
                "sharding='fsdp2' trains only in float32 or bfloat16, not in float16: set "
                f"{self._option('model.dtype')} to one of these.",
                option=self._option("model.dtype"),
            )
        if self._partitions and any(one.adapters for one in frozen):
            raise ConfigurationError(
                "A term of the loss uses the initial policy as reference model or teacher, which needs "
                "the initial values of the adapter; ZeRO-3 cannot restore them temporarily. Use "
                "sharding='fsdp2' or 'zero2', or remove the term.",
                option=self._option("run.sharding"),
            )
        if self._divides:
            compute = torch.bfloat16 if self.args.bf16 else torch.float32
            shard(self.model, device, compute)
            # So that accelerate neither wraps it in data parallelism nor moves it.
            self.model._is_accelerate_prepared = True
            for one in frozen:
                one.divide(self.model, device, compute)
        else:
            for one in frozen:
                one.to(device)
        if begin_from is not None:
            self._check_carried(begin_from)

    def _option(self, name: str) -> str:
        """Return an option's name as users of this trainer write it, from its full name such as ``model.dtype``."""
        return name

    @property
    def _divides(self) -> bool:
        return self.sharding == "fsdp2" and self.args.world_size > 1

    @property
    def _partitions(self) -> bool:
        """Whether ZeRO-3 divides the weights."""
        return self.sharding == "zero3" and self.args.world_size > 1

    @property
    def _writes_shards(self) -> bool:
        return self.sharding != "none"

    def _move_model_to_device(self, model: Any, device: torch.device) -> None:
        # Sharding moves the weights, which may not fit on the device as a whole.
        if not self._divides:
            super()._move_model_to_device(model, device)

    def _prepare_for_training(self, max_steps: int, train_dataloader: Any, resume_from_checkpoint: Any) -> Any:
        # Sharded weights and optimizer state are read together, after both are sharded.
        read_now = None if self._writes_shards else resume_from_checkpoint
        prepared = super()._prepare_for_training(max_steps, train_dataloader, read_now)
        if resume_from_checkpoint is None:
            if self._begin_from is not None:
                self._carry(self._begin_from)
        elif self._writes_shards:
            self._load_optimizer_and_scheduler(resume_from_checkpoint)
        return prepared

    def create_optimizer(self, model: Any = None) -> Any:
        """Create the optimizer, and record its class and weights before accelerate or DeepSpeed wraps it."""
        is_new = self.optimizer is None
        made = super().create_optimizer(model)
        if is_new:
            self._optimized = OptimizerLayout.of(made, self.model)
        return made

    def _check_carried(self, checkpoint: Path) -> None:
        """Raise an error before training if the optimizer state of an earlier run does not fit this run's optimizer."""
        plugin = getattr(self.accelerator.state, "deepspeed_plugin", None)
        if plugin is not None and "optimizer" in plugin.deepspeed_config:
            raise ConfigurationError(
                "DeepSpeed's configuration names its own optimizer, which cannot load the state of an "
                "earlier run: remove the optimizer from the configuration, or remove optim.begin_from.",
                option="optim.begin_from",
            )
        self.create_optimizer()
        self.optimizer: Any = None  # it is created again once the weights are on their devices
        assert self._optimized is not None
        check_fits(checkpoint, self._optimized, sharding=self.sharding)

    def _carry(self, checkpoint: Path) -> None:
        """Load only the optimizer state of an earlier run, without weights, learning rates and their schedule."""
        state = self._state()
        with naming_checkpoint(checkpoint):
            if isinstance(state, ZeroState):
                state.read(str(checkpoint), weights_too=False)
            elif shards.has_shards(checkpoint):
                state.load(shards.read(checkpoint, state.wanted_optimizer))
            else:
                state.load(whole_state(checkpoint))

    def train(self, resume_from_checkpoint: str | None = None, *args: Any, **kwargs: Any) -> Any:
        """Train; see transformers' ``Trainer.train``.

        Raises:
            ConfigurationError: The checkpoint to resume from cannot be read.
        """
        if resume_from_checkpoint is not None:
            with naming_checkpoint(resume_from_checkpoint):
                state = TrainerState.load_from_json(str(Path(resume_from_checkpoint) / TRAINER_STATE_NAME))
                if not (type(state.global_step) is type(state.train_batch_size) is int):
                    raise ValueError(f"{TRAINER_STATE_NAME} lacks the number of steps or the batch size")
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if not (self._writes_shards or shards.has_shards(resume_from_checkpoint)):
            with naming_checkpoint(resume_from_checkpoint):
                super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with naming_checkpoint(checkpoint or ""):
            super()._load_rng_state(checkpoint)

    def _clip_grad_norm(self, model: Any) -> Any:
        return whole(super()._clip_grad_norm(model))

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        return whole(super()._get_grad_norm(model, grad_norm))

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Export the model; a checkpoint of a sharded run holds its weights in shards instead."""
        wanted = None if _internal_call else self._export_dtype
        if not self._writes_shards and wanted is None:
            super().save_model(output_dir, _internal_call)
            return
        folder = output_dir or self.args.output_dir
        if _internal_call:
            Path(folder).mkdir(parents=True, exist_ok=True)
            return
        # Rounded one by one, so that the first process never holds two copies in float32.
        weights = {name: _in(value, wanted) for name, value in self._gathered() if self.args.should_save}
        if self.args.should_save:
            self._save(folder, state_dict=weights)
            if wanted is not None:
                _declare(Path(folder), wanted)
        self.ranks.wait()

    def _gathered(self) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the weights of an export, gathered in host memory; every process must consume all of them."""
        state = self._state()
        weights = [state.whole()]
        if not hasattr(self.model, "peft_config"):
            weights += [state.frozen(), _buffers(self.model)]
        return ((name, value.cpu()) for name, value in chain.from_iterable(weights))

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self._optimized is not None and self.args.should_save:
            self._optimized.write(output_dir)
        if not self._writes_shards:
            super()._save_optimizer_and_scheduler(output_dir)
            if self._moved_reference and self.args.should_save:
                torch.save(self._moved_reference, Path(output_dir) / _REFERENCE)
            return
        if self.args.should_save:
            shards.clear(output_dir)
            torch.save(self.lr_scheduler.state_dict(), Path(output_dir) / SCHEDULER_NAME)
            torch.save(_numbers(self._optimizer()), Path(output_dir) / _GROUPS)
        self.ranks.wait()
        beside = {f"{shards.REFERENCE}{name}": value for name, value in self._moved_reference.items()}
        shards.write(output_dir, self._state().tensors() | beside)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with naming_checkpoint(checkpoint or ""):
            self._load_states(checkpoint)

    def _load_states(self, checkpoint: str | None) -> None:
        if checkpoint is None or not shards.has_shards(checkpoint):
            if checkpoint is not None and self._writes_shards:
                raise ConfigurationError(
                    f"The checkpoint {checkpoint} was written without sharding, but this run has "
                    f"sharding={self.sharding!r}: resume with sharding='none', on any number of processes.",
                    option=self._option("run.sharding"),
                )
            super()._load_optimizer_and_scheduler(checkpoint)
            if checkpoint is not None and self.reference is not None and (Path(checkpoint) / _REFERENCE).exists():
                moved = torch.load(Path(checkpoint) / _REFERENCE, map_location="cpu", weights_only=True)
                self.reference.load_state_dict(moved)
            return
        state = self._state()
        if isinstance(state, ZeroState):
            state.read(checkpoint)
        else:
            state.load(shards.read(checkpoint, state.wanted))
        if self.reference is not None:
            read = shards.read(checkpoint, self._wanted_of_reference)
            if read:
                self.reference.load_state_dict(
                    {name.removeprefix(shards.REFERENCE): value for name, value in read.items()}
                )
        numbers = torch.load(Path(checkpoint) / _GROUPS, map_location="cpu", weights_only=True)
        for group, own in zip(self._optimizer().param_groups, numbers, strict=True):
            group.update(own)
        scheduler = torch.load(Path(checkpoint) / SCHEDULER_NAME, map_location="cpu", weights_only=True)
        self.lr_scheduler.load_state_dict(scheduler)

    @property
    def _moved_reference(self) -> dict[str, Tensor]:
        """Return the weights of the reference model if it was reset; otherwise an empty dict."""
        return {} if self.reference is None or not self.reference.moved else self.reference.state_dict()

    def _wanted_of_reference(self, held: Mapping[str, shards.TensorInfo]) -> dict[str, Tensor]:
        """Return tensors into which the reference model of a checkpoint is read, by their names in the checkpoint.

        ``held`` has the metadata of the checkpoint's tensors. The result is empty if the checkpoint has no reference
        model.
        """
        assert self.reference is not None
        return {
            f"{shards.REFERENCE}{name}": torch.empty_like(value)
            for name, value in self.reference.comparable(self.model).items()
            if f"{shards.REFERENCE}{name}" in held
        }

    def _state(self) -> TorchState | ZeroState:
        if self.is_deepspeed_enabled:
            return ZeroState(self.model, self.deepspeed, self.ranks.rank, self.ranks.size)
        return TorchState(self.model, self._optimizer())

    def _optimizer(self) -> Any:
        """The optimizer inside accelerate's wrapper."""
        return getattr(self.optimizer, "optimizer", self.optimizer)


def _numbers(optimizer: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]


def _buffers(module: Any) -> Iterator[tuple[str, Tensor]]:
    """Return the module's buffers that transformers saves in checkpoints."""
    names = set(module.state_dict())
    return ((name, value) for name, value in module.named_buffers() if name in names)


def _in(value: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Return a tensor converted to a precision; tensors that are not floating-point, such as masks, are unchanged."""
    return value if dtype is None or not value.is_floating_point() else value.to(dtype)


def _declare(folder: Path, dtype: torch.dtype) -> None:
    """Write the precision of the weights into the model's configuration, where engines read it."""
    file = folder / "config.json"
    if file.exists():  # an adapter has none
        config = json.loads(file.read_text("utf-8"))
        config["dtype"] = str(dtype).removeprefix("torch.")
        file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8")
