"""``Cost``: what a stage takes, as far as it can be told before it runs; and ``About``, what that rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from ..options.config import TrainConfig
from ..plan.architecture import Architecture, architecture_of
from ..plan.assumptions import Assumptions
from ..plan.device import GIB, Device, device_of
from ..plan.placement import RESIDENT, usable
from ..plan.plan import make_plan
from ..plan.serving import serving_seconds
from ..plan.step_time import mean_tokens
from ..plan.training_memory import Sharding, Training, training_memory
from ..plan.workload import Workload
from .spread import Spread


@dataclass(frozen=True)
class Machine(CheckedOptions):
    """The machine that costs are computed for.

    Attributes:
        gpus: How many devices there are.
        gpu: What they are, as ``rstar2 plan --gpu`` takes it; ``cpu`` for a machine without an accelerator, of whose
            speed nothing is known.
        assume: Assumptions of ``rstar2 plan``.
    """

    gpus: int = option(1, least=1)
    gpu: str = "cpu"
    assume: Assumptions = field(default_factory=Assumptions)

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: There is no such device, or a number is out of its range.
        """
        super().__post_init__()
        device_of(self.gpu)

    @cached_property
    def device(self) -> Device:
        """One device."""
        return device_of(self.gpu)


@dataclass(frozen=True, slots=True)
class About:
    """What a stage's cost is computed from, beside its own options.

    Attributes:
        machine: The machine.
        model: The model that the pipeline begins with, as far as the stage's inputs lead back to one; empty else.
        counts: How many problems or traces there are in each input of the stage, where that is known.
    """

    machine: Machine = field(default_factory=Machine)
    model: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def architecture(self) -> Architecture | None:
        """The sizes of the model; ``None`` where they are not known."""
        try:
            return architecture_of(self.model) if self.model else None
        except ConfigurationError:
            return None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage takes.

    Attributes:
        steps: Optimizer steps.
        episodes: Episodes that are played.
        rows: Traces, or episodes, that are trained on.
        tokens: Tokens of the episodes, the prompts aside.
        seconds: Wall-clock seconds; ``None`` where nobody knows.
        devices: How many devices it uses.
        count: How many problems or traces its outputs have, by name of the output, where that is known.
        notes: What is assumed, a sentence each.
    """

    steps: int = 0
    episodes: int = 0
    rows: int = 0
    tokens: int = 0
    seconds: float | None = None
    devices: int = 1
    count: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @classmethod
    def of_training(cls, config: TrainConfig, about: About, spread: Spread) -> Self:
        """The cost of a training run: what it plays, and seconds by ``rstar2 plan``; evaluation included.

        Args:
            config: The run's options.
            about: What is known beside.
            spread: Over how many devices it is spread. Servers that nobody launches here stand beside them.
        """
        assume, steps = about.machine.assume, config.run.steps
        work = Workload.of(config)
        work = replace(work, sharding=work.sharding or spread.sharding or "none")
        played, mean = work.episodes * steps, mean_tokens(work, assume)
        held_out = 0
        if config.eval.every:
            held_out = config.eval.episodes * (1 + -(-steps // config.eval.every))
        notes = [f"episodes of {mean:,} tokens on average"]
        train, note = _known(spread, about.machine)
        serve, width = spread.serve, spread.tensor_parallel
        if not serve and config.rollout.engine == SERVERS:
            serve, width = servers_of(config.rollout.engine_options), 1
        seconds = None
        if (model := about.architecture) is not None and about.machine.device.is_accelerator:
            gpus = train + serve
            plan = make_plan(model, about.machine.device, gpus, work, assume, serve=serve, tensor_parallel=width)
            if plan.time is None:
                notes.append(f"it does not fit: {plan.placed.lacking}")
            else:
                seconds = steps * plan.time.total + plan.time.rollout * held_out / max(1, work.episodes)
        return cls(
            steps=steps,
            episodes=played + held_out,
            rows=work.rows * steps,
            tokens=(played + held_out) * mean,
            seconds=seconds,
            devices=train + serve,
            notes=[*notes, *note, *_fewer(train + serve, about.machine)],
        )

    @classmethod
    def of_tuning(
        cls, rows: int, steps: int, longest: int, about: About, spread: Spread, *, lora_rank: int = 0
    ) -> Self:
        """The cost of training on given rows.

        Args:
            rows: Rows, each as often as it is trained on.
            steps: Optimizer steps.
            longest: Tokens of the longest row; half of it is taken for the mean.
            about: What is known beside.
            spread: Over how many devices it is spread.
            lora_rank: Rank of the adapters; 0 trains all weights.
        """
        mean, seconds = max(1, longest // 2), None
        device, assume = about.machine.device, about.machine.assume
        devices, note = _known(spread, about.machine)
        notes = [f"rows of {mean:,} tokens on average"]
        if (model := about.architecture) is not None and device.operations is not None:
            sharding = cast(Sharding, (spread.sharding or "none") if devices > 1 else "none")
            memory = training_memory(model, Training(longest, devices, sharding, lora_rank=lora_rank))
            kept = sum(memory.get(name, 0) for name in (*RESIDENT, "gradients"))
            share = assume.train_share_experts if model.experts else assume.train_share
            # Backward costs twice what forward does.
            operations = 3 * model.forward_operations(rows * mean, mean / 2)
            if kept <= usable(device, assume):
                seconds = operations / (devices * device.operations * share)
            else:
                most = usable(device, assume) / GIB
                notes.append(
                    f"it does not fit: weights and optimizer take {kept / GIB:.0f} GiB of {most:.0f} on a device"
                )
        notes += [*note, *_fewer(devices, about.machine)]
        return cls(steps=steps, rows=rows, seconds=seconds, devices=devices, notes=notes)

    @classmethod
    def of_playing(
        cls,
        budget: int,
        episodes: int | None,
        about: About,
        *,
        engines: int = 1,
        tensor_parallel: int = 1,
        in_flight: int | None = None,
    ) -> Self:
        """The cost of letting a model play.

        Args:
            budget: Tokens that an episode may have after its prompt.
            episodes: Episodes; ``None`` where nobody knows how many problems there are.
            about: What is known beside.
            engines: Engines that play side by side.
            tensor_parallel: Devices of one engine.
            in_flight: Episodes that all engines play at once, at most; ``None`` is what their caches hold.
        """
        machine, devices = about.machine, engines * tensor_parallel
        if episodes is None:
            return cls(devices=devices, notes=["how many problems there are is not known yet"])
        mean, seconds = machine.assume.mean_tokens or max(1, budget // 2), None
        notes = [f"episodes of {mean:,} tokens on average"]
        if (model := about.architecture) is not None and machine.device.is_accelerator:
            seconds = serving_seconds(
                model,
                machine.device,
                engines,
                episodes,
                budget,
                mean,
                machine.assume,
                tensor_parallel=tensor_parallel,
                in_flight=in_flight,
            )
            if seconds is None:
                notes.append("it does not fit: an engine has no room for the model and one episode")
        notes += _fewer(devices, machine)
        return cls(episodes=episodes, tokens=episodes * mean, seconds=seconds, devices=devices, notes=notes)


SERVERS = "vllm-server"
"""The engine that plays on servers."""


def servers_of(options: Mapping[str, Any]) -> int:
    """How many servers the options of the engine name; each counts as one device: what it runs on is not said here."""
    return max(1, len(options.get("base_urls") or ()))


def _known(spread: Spread, machine: Machine) -> tuple[int, list[str]]:
    """Devices that train, and a sentence where that is assumed."""
    if spread.train is not None:
        return spread.train, []
    return machine.gpus, [f"its launcher does not say on how many devices: all {machine.gpus} are assumed"]


def _fewer(devices: int, machine: Machine) -> list[str]:
    return [f"on {devices} of {machine.gpus} devices"] if devices < machine.gpus else []
