"""Compare multi-turn episodes per second: this package's rollout and TRL's own ``environment_factory`` loop.

    python benchmarks/rollout.py [--groups 8] [--group-size 16] [--repeats 5] [--policy FOLDER] [--rows ...] [--vllm]
                                 [--model FOLDER] [--json FILE]

Both sides play the same tiny policy (``rollout_policy.py``), which really calls the tool, in the same environment with
the same problems and seeds, the same chat template, budget and sampling parameters, with one thread. The tool answers
at once, or after a time drawn from a heavy tail, the same times for both. TRL's side is one call of the trainer's own
generation step, as its training loop makes it (environments reset, turns, tools, grading; no loss); ours is
``Player.play``. They alternate, so that a busy machine slows both; each figure is the median of the repeats, and each
ratio the median of the ratios of neighbouring runs.

``step`` is an optimizer step, rollouts aside: GRPO-RoC chooses from 2G recorded episodes and trains on G, and TRL's
trainer is handed those same G. ``reuse`` is our engine with and without the cache that is kept between turns.

``--vllm`` plays the first two rows through vLLM on both sides, compiled, each in a process of its own, since a process
can have one: TRL's ``vllm_mode="colocate"`` without its correction of vLLM's probabilities, which computes every row
once more, and without its weight sync, which fails on a CPU; they stay those of the policy's folder.

``--model`` lets a pretrained model play, after it has learnt the turns: arithmetic then outweighs the loops' own work.

What it does not show: accelerators; what the two sides would do with different random lengths (each draws its own, from
the same distribution).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from env import ANSWER, TARGET_US, Nothing, best_us, episode
from rich.console import Console
from rich.table import Table
from rollout_policy import make_policy
from rollout_sides import ENV, TOKENS, Bench, Played, Side, computed, heavy_tail
from rollout_trainers import EpisodeSteps
from transformers import AutoModelForCausalLM

from rstar2_env.rollout import (
    SamplingParams,
    TransformersEngine,
)

ROWS = ("instant", "tail", "reuse", "overhead", "step")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        what: The compared quantity.
        ours: This package's figure.
        other: The figure of the other side.
        ratio: Ratio of the two figures; above 1 means faster, or longer for times.
        target: The target of the ratio.
        runs: The single runs.
    """

    what: str
    ours: str
    other: str
    ratio: float | None
    target: str
    runs: Any


def compare(what: str, target: str, one: Callable[[int], Played], other: Callable[[int], Played], repeats: int) -> Row:
    """Run two sides in turn, after one run of each to warm up."""
    one(0), other(0)
    runs = [(one(seed), other(seed)) for seed in range(1, repeats + 1)]
    ratios = [b.seconds / a.seconds for a, b in runs]
    of_cpu = statistics.median(b.cpu / a.cpu for a, b in runs)

    def figure(side: int) -> str:
        rate = statistics.median(run[side].episodes / run[side].seconds for run in runs)
        cpu = statistics.median(run[side].cpu for run in runs)
        tokens = statistics.median(run[side].policy_tokens / run[side].episodes for run in runs)
        return f"{rate:.1f} episodes/s ({cpu:.2f} s of CPU, {tokens:.0f} tokens an episode)"

    what += f" (CPU alone: {of_cpu:.2f})"
    single = [[asdict(played) for played in run] for run in runs]
    return Row(what, figure(0), figure(1), statistics.median(ratios), target, single)


def reuse(policy: Path, count: int, repeats: int, *, turns: int = 6, shown: int = 80, new: int = 20) -> Row:
    """Long conversations through our engine with the cache between turns, and without."""
    model = AutoModelForCausalLM.from_pretrained(policy)
    engines = TransformersEngine(model), TransformersEngine(model, max_tokens_in_cache=0)

    def run(engine: TransformersEngine, seed: int) -> tuple[int, float]:
        async def converse(number: int) -> None:
            rng, ids = np.random.default_rng([seed, number]), list[int]()
            for turn in range(turns):
                ids += [int(i) for i in rng.integers(4, 90, size=shown)]
                ids += (await engine.generate(ids, SamplingParams(new, seed=turn))).ids

        async def every() -> None:
            await asyncio.gather(*map(converse, range(count)))

        before, cpu = computed(engine), time.process_time()
        asyncio.run(every())
        return computed(engine) - before, time.process_time() - cpu

    try:
        runs = [tuple(run(engine, seed) for engine in engines) for seed in range(repeats + 1)][1:]
    finally:
        for engine in engines:
            engine.close()
    middle = [[statistics.median(run[side][what] for run in runs) for what in (0, 1)] for side in (0, 1)]
    figures = [f"{tokens:,.0f} prompt tokens computed, {cpu:.2f} s of CPU" for tokens, cpu in middle]
    what = (
        f"cache between turns, compared with none: {count} conversations of {turns} turns, {shown} + {new} tokens each"
    )
    return Row(what, *figures, statistics.median(b[1] / a[1] for a, b in runs), "–", runs)


def overhead() -> Row:
    """``reset`` and ``step`` without a call, less an empty environment's; ``env.py`` measures more of it."""
    env = gym.make(ENV, problems=[{"question": "What is 3 + 4?", "answer": "7"}]).unwrapped
    own = best_us(episode(env)) - best_us(episode(Nothing()))
    row = f"reset + step without a call ({len(ANSWER)} characters)"
    return Row(row, f"{own:.1f} µs", "–", None, f"{TARGET_US:.0f} µs or less", own)


def step(policy: Path, groups: int, group_size: int, repeats: int) -> Row:
    """Compare an optimizer step of GRPO-RoC on recorded episodes with TRL's step on the selected rows."""
    bench = Bench(policy, groups, 2 * group_size)
    try:
        episodes = bench.play(0)
    finally:
        bench.close()
    # The policy solves nothing; a coin decides which episodes are right, so that every group trains.
    for number, one in enumerate(episodes):
        one.reward, one.correct = float(number % 2), bool(number % 2)
    size = 2 * group_size
    recorded = [episodes[at : at + size] for at in range(0, len(episodes), size)]
    steps = EpisodeSteps(policy, recorded, group_size, TOKENS)
    runs = [(steps.ours(), steps.trl()) for _ in range(repeats + 1)][1:]
    figures = [f"{statistics.median(run[side] for run in runs):.3f} s of CPU" for side in (0, 1)]
    what = "optimizer step, GRPO-RoC compared with TRL's GRPO on the same rows"
    ratio = statistics.median(a / b for a, b in runs)
    return Row(what, *figures, ratio, "1.05 or less", runs)


def measure(arguments: argparse.Namespace) -> Iterator[Row]:
    """Measure the rows that are asked for, one after the other."""
    with tempfile.TemporaryDirectory() as scratch:
        policy = make_policy(
            arguments.policy or Path(scratch) / "policy", pretrained=arguments.model, steps=arguments.policy_steps
        )
        shape = (arguments.groups, arguments.group_size)
        tail = heavy_tail(400)
        for name, what, waits, target in (
            ("instant", "episodes, tool latency 0", (0.0,), "3 x"),
            ("tail", "episodes, tool latency median 20 ms, 1 % 2 s", tail, "6 x"),
        ):
            if name in arguments.rows:
                bench = Bench(policy, *shape, waits=waits)
                yield compare(what, target, bench.ours, bench.trl, arguments.repeats)
                bench.close()
            if name in arguments.rows and arguments.vllm:
                with Side("ours", policy, *shape, waits) as ours, Side("trl", policy, *shape, waits) as theirs:
                    yield compare(f"through vLLM, {what}", target, ours, theirs, arguments.repeats)
        if "reuse" in arguments.rows:
            yield reuse(policy, arguments.groups * arguments.group_size, arguments.repeats)
        if "overhead" in arguments.rows:
            yield overhead()
        if "step" in arguments.rows:
            yield step(policy, *shape, arguments.repeats)


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print the table and the same as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=8, help="problems")
    parser.add_argument("--group-size", type=int, default=16, help="episodes of each")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--policy", type=Path, help="folder to keep the policy in, so that it is made once")
    parser.add_argument("--model", type=Path, help="pretrained model that learns the turns, in place of a tiny one")
    parser.add_argument("--policy-steps", type=int, help="training steps of the policy [120; 16 with --model]")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--vllm", action="store_true", help="also play the first two rows through vLLM on both sides")
    parser.add_argument("--json", type=Path, help="file for the single runs")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    load = os.getloadavg()[0]
    rows = []
    table = Table("quantity", "this package", "other", "ratio", "target")
    for row in measure(arguments):
        rows.append(row)
        print(f"measured: {row.what}: {row.ours}, compared with {row.other}", file=sys.stderr, flush=True)
        table.add_row(row.what, row.ours, row.other, "–" if row.ratio is None else f"{row.ratio:.2f}", row.target)
    Console().print(table)
    note = f"load {load:.1f} before and {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores, one thread"
    print(note)
    record = {"load": note, "rows": [asdict(row) for row in rows]}
    print(json.dumps({**record, "rows": [{k: v for k, v in row.items() if k != "runs"} for row in record["rows"]]}))
    if arguments.json:
        arguments.json.write_text(json.dumps(record, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
