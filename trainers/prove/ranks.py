"""The part ``sharded``: run collectives, and optimizer steps of a sharded model, on all devices of this machine.

The part starts ``torchrun`` with one process per accelerator, or with two processes on a CPU; these processes run this
module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import distributed

from ..backends.trl.sharding.fsdp2 import shard
from ..plan.architecture import Architecture
from ..plan.assumptions import Assumptions
from ..plan.placement import placements
from ..plan.training_time import training_time
from ..plan.workload import Workload
from .findings import PartFinding, ProofFigure, judged, planned_figure
from .machine_speed import synchronize
from .scale import device, known_device, precision, random_model, scale, sizes_of

_NEAR = {torch.float32: 1e-3, torch.bfloat16: 0.05}
"""Largest allowed difference, in nats, between the loss with sharded and the loss with whole weights, by precision."""


def sharded(model: str | None) -> PartFinding:
    """Run collective operations and sharded optimizer steps on all devices; see ``run_part``."""
    count = torch.cuda.device_count() or 2
    with TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        start = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}"]
        ended = subprocess.run(
            [*start, "-m", __name__, str(out), model or ""], capture_output=True, text=True, check=False
        )
        if ended.returncode or not out.exists():
            return PartFinding("sharded", "problem", f"{count} processes: {ended.stderr.strip()[-1500:]}")
        figures = [ProofFigure(**figure) for figure in json.loads(out.read_text())]
    return judged("sharded", f"{count} processes, {'accelerators' if torch.cuda.is_available() else 'gloo'}", figures)


def main(out: str, model: str) -> None:
    """Run one of the distributed processes; the first process writes the measurements.

    Args:
        out: The JSON file to write.
        model: Folder of a model; empty for a random one.
    """
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        figures = [*_collectives(), *_steps(model or None)]
        if distributed.get_rank() == 0:
            Path(out).write_text(json.dumps([asdict(figure) for figure in figures]))
    finally:
        distributed.destroy_process_group()


def _collectives() -> list[ProofFigure]:
    world, own, rank = distributed.get_world_size(), device(), distributed.get_rank()
    numbers = torch.full(((scale().megabytes << 20) // 4,), float(rank + 1), device=own)
    distributed.all_reduce(numbers)  # also opens the connections
    sum_error = float((numbers - world * (world + 1) / 2).abs().max())
    parts = torch.empty(world * numbers.numel(), device=own)
    seconds = []
    for _ in range(3):
        synchronize()
        began = time.perf_counter()
        distributed.all_gather_into_tensor(parts, numbers)
        synchronize()
        seconds.append(time.perf_counter() - began)
    received = (world - 1) * numbers.nbytes / min(seconds)
    low = Assumptions().sharding_gb_s if torch.cuda.is_available() and world > 1 else None
    return [
        ProofFigure("error of a sum over all processes", sum_error, None, 0.0, "exact", must=True),
        ProofFigure("a gather, GB per second to each process", received / 1e9, low, None, "rstar2 plan: sharding_gb_s"),
    ]


def _steps(folder: str | None) -> list[ProofFigure]:
    own, sizes, dtype = device(), scale(), precision()
    model = random_model(sizes, folder).to(own)
    architecture = sizes_of(model)
    generator = torch.Generator().manual_seed(distributed.get_rank())
    words = min(model.config.vocab_size, 1 << 15)
    ids = torch.randint(words, (1, sizes.tokens), generator=generator).to(own)
    with torch.no_grad(), torch.autocast(own.type, dtype, enabled=dtype is not torch.float32):
        whole = float(model(input_ids=ids, labels=ids).loss)
    shard(model, own, dtype)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, seconds = [], []
    for _ in range(sizes.steps):
        synchronize()
        began = time.perf_counter()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        synchronize()
        losses.append(float(loss))
        seconds.append(time.perf_counter() - began)
    worst = torch.tensor([abs(losses[0] - whole), losses[-1] - losses[0]], device=own)
    distributed.all_reduce(worst, distributed.ReduceOp.MAX)
    figures = [
        ProofFigure(
            "loss of sharded minus loss of whole weights, nats",
            float(worst[0]),
            None,
            _NEAR[dtype],
            dtype_name(),
            must=True,
        ),
        ProofFigure("change of the loss in the steps, nats", float(worst[1]), None, 0.0, "it falls", must=True),
    ]
    return [*figures, *_throughput(architecture, sizes.tokens / min(seconds[1:] or seconds))]


def dtype_name() -> str:
    """Return the name of the precision in which this machine computes, such as ``float32``."""
    return str(precision()).removeprefix("torch.")


def _throughput(model: Architecture | None, each: float) -> list[ProofFigure]:
    """Return the measured speed with the range that a plan expects and, if known, the MFU and the peak memory.

    Args:
        model: Sizes of the model; ``None`` if unknown.
        each: Measured tokens per second of each device.
    """
    world, sheet, row = distributed.get_world_size(), known_device(), scale().tokens
    planned, figures = None, []
    if model is not None and sheet is not None and sheet.operations is not None:
        work = Workload(world, 1, 1, row, row, 1, recompute=False)
        assume = Assumptions(mean_tokens=row, prompt_tokens=1, spread=1e-6)
        placed = next(placements(model, sheet, world, work, assume, serve=0))
        planned = row / training_time(model, sheet, replace(placed), work, assume).total
        share, estimate = (3 * model.forward_operations(rate, row / 2) / sheet.operations for rate in (each, planned))
        figures.append(planned_figure("share of the device's peak in training (MFU)", share, estimate))
    if torch.cuda.is_available():
        figures.append(ProofFigure("peak memory of training, GiB", torch.cuda.max_memory_allocated() / 2**30))
    return [planned_figure("tokens trained per second on each device", each, planned), *figures]


if __name__ == "__main__":
    main(*sys.argv[1:])
