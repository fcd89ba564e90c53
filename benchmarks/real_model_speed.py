"""Speed and memory of training a real model on a CPU, relative to plain torch on the same tokens.

    python benchmarks/real_model_speed.py --model FOLDER [--part sft] [--steps 5] [--dtype bfloat16] [--json FILE]
    python benchmarks/real_model_speed.py  # a model of SmolLM2-135M's shape with random weights

``sft`` is the whole cold start of ``rstar2 sft``, and ``train`` the optimizer step of ``rstar2 train`` on rows that are
given. Plain torch runs the layers on padded rows without a mask, computes the logits of the trained tokens alone, and
calls ``backward`` and the fused AdamW. Each side runs in its own process, in the same precision and with as many
threads. Their steps alternate, one at a time, so that both meet the same load of the machine; the figure is the
median of the ratios of neighbours, after one step of each that is not counted. A ratio above 1 says that this package
is faster. The peak memory is that of each process.

Rows of ``sft`` are traces of the same lengths that a math problem has: about 140 tokens to read and 140 to learn. Rows
of ``train`` are groups of 8 episodes that share their prompt; ``--separate`` computes it for each row, as plain torch
does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import real_model_steps
from real_model_steps import Asked, make_model

PARTS = ("sft", "train")
SIDES = ("ours", "plain")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Print the ratios of both parts; return the figures by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of the model; a random one by default")
    parser.add_argument("--part", choices=PARTS, help="only this part")
    parser.add_argument("--steps", type=int, default=5, help="pairs of steps that are counted")
    parser.add_argument("--rows", type=int, default=8, help="rows of a step")
    parser.add_argument("--prompt", type=int, default=140, help="tokens of a row that are read")
    parser.add_argument("--own", type=int, default=140, help="tokens of a row that are learnt")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"), help="precision of products")
    parser.add_argument("--threads", type=int, help="threads of torch; by default each side keeps its own choice")
    parser.add_argument("--separate", action="store_true", help="compute the prompt of a group for each of its rows")
    parser.add_argument("--lora-rank", type=int, default=0, help="let this package train adapters of this rank")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    given = parser.parse_args(arguments)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or str(make_model(Path(folder)))
        for part in [given.part] if given.part else PARTS:
            sides = {
                side: Asked(
                    side,
                    part,
                    model,
                    given.dtype,
                    given.threads,
                    given.steps + 1,
                    given.rows,
                    given.prompt,
                    given.own,
                    given.separate,
                    given.lora_rank,
                )
                for side in SIDES
            }
            figures[part] = compare(sides)
            _show(part, figures[part])
    if given.json:
        given.json.write_text(json.dumps({"asked": asdict(sides["ours"]), **figures}, indent=2) + "\n", "utf-8")
    return figures


def compare(sides: Mapping[str, Asked]) -> dict[str, Any]:
    """Run the sides, step by step in turns; return the figures of each side and the ratio of their speeds."""
    running: dict[str, Side] = {}
    try:
        for side, asked in sides.items():
            running[side] = Side(asked)
        times: dict[str, list[dict[str, float]]] = {side: [] for side in running}
        for number in range(next(iter(sides.values())).steps):
            for side in list(running) if number % 2 else reversed(running):
                times[side].append(running[side].step())
        found: dict[str, Any] = {side: {**one.end(), **_medians(times[side][1:])} for side, one in running.items()}
    finally:
        for one in running.values():
            one.close()
    pairs = list(zip(times["plain"][1:], times["ours"][1:], strict=True))
    found["ratios"] = [plain["wall"] / ours["wall"] for plain, ours in pairs]
    found["ratio"] = statistics.median(found["ratios"])
    found["cpu_ratio"] = statistics.median(plain["cpu"] / ours["cpu"] for plain, ours in pairs)
    return found


def _medians(times: Sequence[Mapping[str, float]]) -> dict[str, float]:
    wall = statistics.median(one["wall"] for one in times)
    tokens = times[0]["tokens"]
    return {"seconds": wall, "cpu_seconds": statistics.median(one["cpu"] for one in times), "tokens_s": tokens / wall}


def _show(part: str, found: Mapping[str, Any]) -> None:
    for side in SIDES:
        own = found[side]
        print(
            f"{part:5} {side:5} {own['tokens_s']:8.1f} tokens/s  {own['cpu_seconds']:7.2f} CPU s a step  "
            f"{own['peak_gib']:5.2f} GiB  {own['threads']} threads"
        )
    low, high = min(found["ratios"]), max(found["ratios"])
    print(f"{part:5} ratio {found['ratio']:.3f} ({low:.3f} to {high:.3f}), of CPU time {found['cpu_ratio']:.3f}\n")


class Side:
    """A process that computes one step each time it is asked.

    Args:
        asked: The steps to compute.

    Raises:
        RuntimeError: The process ended.
    """

    def __init__(self, asked: Asked) -> None:
        command = [sys.executable, real_model_steps.__file__, json.dumps(asdict(asked))]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        if asked.threads is not None:
            environment["OMP_NUM_THREADS"] = str(asked.threads)
        self._log = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115  # ``close`` closes it
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment
        )
        self._read()

    def step(self) -> dict[str, float]:
        """Compute a step; return its seconds, its CPU seconds and its tokens."""
        assert self._process.stdin is not None
        self._process.stdin.write("step\n")
        self._process.stdin.flush()
        return self._read()

    def end(self) -> dict[str, float]:
        """Return the peak memory and the number of threads, once all steps are done."""
        return self._read()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _read(self) -> dict[str, float]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, float] = json.loads(line)
                return found
        self._log.seek(0)
        raise RuntimeError(f"A side ended early:\n{self._log.read()[-3000:]}")


if __name__ == "__main__":
    main()
