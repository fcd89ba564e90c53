"""``Cost``: estimated cost of a pipeline stage before it runs; ``CostInputs``: the data for this estimate."""

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
from ..plan.training_memory import Sharding, Training, training_memory
from ..plan.workload import Workload, mean_tokens
from .spread import Spread


@dataclass(frozen=True)
class Machine(CheckedOptions):
    """The machine that costs are computed for.

    Attributes:
        gpus: Number of devices of the machine.
        gpu: Device model, as in ``rstar2 plan --gpu``; ``cpu`` for a machine without an accelerator (of unknown speed).
        assume: Assumptions about speed and memory, as for ``rstar2 plan``.
    """

    gpus: int = option(1, least=1)
    gpu: str = "cpu"
    assume: Assumptions = field(default_factory=Assumptions)

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: The device is unknown, or a number is out of its range.
        """
        super().__post_init__()
        device_of(self.gpu)

    @cached_property
    def device(self) -> Device:
        """The data sheet of one device."""
        return device_of(self.gpu)


@dataclass(frozen=True, slots=True)
class CostInputs:
    """The data from which a stage's cost is computed, in addition to its options.

    Attributes:
        machine: The machine that runs the stage.
        model: The external model (not an output of the pipeline) from which the stage's model was trained, directly or
            in several stages; empty if there is none.
        counts: Number of problems or traces in each input of the stage, by the name of the option, if known.
    """

    machine: Machine = field(default_factory=Machine)
    model: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def architecture(self) -> Architecture | None:
        """The sizes of the model; ``None`` if unknown."""
        try:
            return architecture_of(self.model) if self.model else None
        except ConfigurationError:
            return None


@dataclass(frozen=True, slots=True)
class Cost:
    """The estimated cost of a stage.

    Attributes:
        steps: Number of optimizer steps.
        episodes: Number of episodes to play.
        rows: Number of traces or episodes to train on.
        tokens: Number of tokens in the episodes, without prompts.
        seconds: Wall-clock seconds; ``None`` if unknown.
        devices: Number of devices that the stage uses.
        count: Number of problems or traces in each output, by its name, if known.
        notes: The assumptions, one sentence each.
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
    def of_training(cls, config: TrainConfig, about: CostInputs, spread: Spread) -> Self:
        """Return the cost of a training run, including evaluation; the seconds are those of ``rstar2 plan``.

        Args:
            config: The run's options.
            about: The machine, the model, and the number of items in each input.
            spread: Devices of the stage. If the stage's launcher starts no servers, the servers in the engine options
                are counted.
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
                notes.append(f"the run does not fit on the devices: {plan.placed.lacking}")
            else:
                seconds = steps * plan.time.total
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
        cls, rows: int, steps: int, longest: int, about: CostInputs, spread: Spread, *, lora_rank: int = 0
    ) -> Self:
        """Return the cost of supervised training on rows; a row is a trace or an episode.

        Args:
            rows: Number of rows; a row counts once for each epoch.
            steps: Number of optimizer steps.
            longest: Maximum number of tokens of a row; the mean is assumed to be half of it.
            about: The machine, the model, and the number of items in each input.
            spread: The devices that the stage uses.
            lora_rank: Rank of the adapters; 0 trains all weights.
        """
        mean, seconds = max(1, longest // 2), None
        device, assume = about.machine.device, about.machine.assume
        devices, note = _known(spread, about.machine)
        notes = [f"rows of {mean:,} tokens on average"]
        if (model := about.architecture) is not None and device.operations is not None:
            sharding = cast(Sharding, (spread.sharding or "none") if devices > 1 else "none")
            how = Training(longest, devices, sharding, lora_rank=lora_rank)
            memory = training_memory(model, how)
            kept = sum(memory.get(name, 0) for name in (*RESIDENT, "gradients"))
            share = assume.train_share_experts if model.experts else assume.train_share
            # In units of a forward pass: 1 for it, 2 for the backward pass, and 1 more if activations are recomputed.
            operations = (3 + how.recompute) * model.forward_operations(rows * mean, mean / 2)
            if kept <= usable(device, assume):
                seconds = operations / (devices * device.operations * share)
            else:
                most = usable(device, assume) / GIB
                notes.append(
                    f"the training does not fit into memory: weights and optimizer need {kept / GIB:.0f} "
                    f"GiB, and a device has {most:.0f} GiB"
                )
        notes += [*note, *_fewer(devices, about.machine)]
        return cls(steps=steps, rows=rows, seconds=seconds, devices=devices, notes=notes)

    @classmethod
    def of_playing(
        cls,
        budget: int,
        episodes: int | None,
        about: CostInputs,
        *,
        engines: int = 1,
        tensor_parallel: int = 1,
        in_flight: int | None = None,
    ) -> Self:
        """Return the cost of episodes played by a model.

        Args:
            budget: Maximum tokens of an episode after its prompt.
            episodes: Number of episodes; ``None`` if the number of problems is unknown.
            about: The machine, the model, and the number of items in each input.
            engines: Number of engines in parallel.
            tensor_parallel: Devices of one engine.
            in_flight: Maximum number of concurrent episodes on all engines; ``None`` for as many as their caches hold.
        """
        machine, devices = about.machine, engines * tensor_parallel
        if episodes is None:
            return cls(devices=devices, notes=["the number of problems is not known yet"])
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
                notes.append(
                    "the model does not fit: an engine does not have enough memory for the model and one episode"
                )
        notes += _fewer(devices, machine)
        return cls(episodes=episodes, tokens=episodes * mean, seconds=seconds, devices=devices, notes=notes)


SERVERS = "vllm-server"
"""Name of the engine that generates on vLLM servers."""


def servers_of(options: Mapping[str, Any]) -> int:
    """Return the number of servers in the engine's options; each counts as one device, as its hardware is unknown."""
    return max(1, len(options.get("base_urls") or ()))


def _known(spread: Spread, machine: Machine) -> tuple[int, list[str]]:
    """Return the number of training devices, and a note if the number is an assumption."""
    if spread.train is not None:
        return spread.train, []
    return machine.gpus, [f"its launcher does not specify the number of devices, so all {machine.gpus} are assumed"]


def _fewer(devices: int, machine: Machine) -> list[str]:
    return [f"on {devices} of {machine.gpus} devices"] if devices < machine.gpus else []
