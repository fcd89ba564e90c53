"""Tokens computed for each token that trains, in a step of which most groups were rejected.

    python benchmarks/wasted_tokens.py [--groups 64] [--scale 64] [--tokens-per-device 32768] [--processes 8]

Computed: rows times width of every micro-batch with a gradient, so padding, prompts and rows that keep processes in
step are counted. Trained: prompt, tool and policy tokens of rows whose advantage is not zero. Rows are as long as those
of long reasoning (mean 6K tokens, at most 12K), divided by ``--scale``; a tiny model computes them.

The first figure is the counter of a real step. The second counts the same rows as TRL's own trainer lays them out: a
rank's whole generation batch is padded to its longest prompt and its longest completion, and a group that was rejected
still fills its rows with one masked token each. The third divides the groups among processes, by the same code that
lays out a step, without computing it.

What it does not show: time; for that see train_step.py.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from step_rows import Step, rows_of
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.trainer.utils import pad

from rstar2_env.core.row import Row
from rstar2_env.trainers.backends.trl.loss.micro_batches import FILLER_WIDTH
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.packing import even_out, pack
from rstar2_env.trainers.backends.trl.run.one_step import one_step
from rstar2_env.trainers.demonstration.tiny import make_tiny_model
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection
from rstar2_env.trainers.losses.ppo_clip import PpoClip


def counted(policy: Path, rows: Sequence[Row], budget: int) -> tuple[float, float]:
    """Tokens computed and tokens that train, as the metrics of a real step have them."""
    objective = Objective([PpoClip()], TokenMean(), NoCorrection())
    model, tokenizer = AutoModelForCausalLM.from_pretrained(policy), AutoTokenizer.from_pretrained(policy)
    with tempfile.TemporaryDirectory() as folder:
        step = one_step(model, tokenizer, rows, objective, folder=folder, tokens_per_device=budget)
    return step.figures["tokens/computed"][0], step.figures["tokens/trained"][0]


def as_trl_pads(rows: Sequence[Row], batch: int) -> int:
    """Tokens that TRL's layout of the same rows computes.

    Args:
        rows: The rows that train.
        batch: Rows of the generation batch; those that are missing are fillers of one token.
    """
    filler = [torch.zeros(1, dtype=torch.long)] * (batch - len(rows))
    prompts = pad([torch.tensor(row.prompt_ids) for row in rows] + filler, padding_side="left")
    completions = pad([torch.tensor(row.completion_ids) for row in rows] + filler, padding_side="right")
    return torch.cat([prompts, completions], dim=1).numel()


def divided(rows: Sequence[Row], budget: int, processes: int) -> int:
    """Tokens that so many processes compute together, each with its share of the groups."""
    shares: list[list[int]] = [[] for _ in range(processes)]
    for row in rows:
        shares[row.episode.group % processes].append(row.tokens)
    packed = [pack(share, budget) for share in shares]
    count = max(map(len, packed))
    return sum(
        len(batch) * max(share[place] for place in batch) if batch else FILLER_WIDTH
        for share, batches in zip(shares, packed, strict=True)
        for batch in even_out(batches, count)
    )


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Print the table; return its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=64, help="groups of 8 episodes that are played")
    parser.add_argument("--rejected", type=float, default=0.7, help="share of the groups of which nothing trains")
    parser.add_argument("--scale", type=int, default=64, help="what every length is divided by")
    parser.add_argument("--tokens-per-device", type=int, default=32768, help="budget of a micro-batch at full size")
    parser.add_argument("--processes", type=int, default=8, help="processes of the third figure")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    step = Step(groups=given.groups, rejected=given.rejected, scale=given.scale)
    budget = step.tokens(given.tokens_per_device)
    with tempfile.TemporaryDirectory() as folder:
        policy = make_tiny_model(Path(folder) / "policy", hidden=32, layers=1)
        rows = rows_of(step, AutoModelForCausalLM.from_pretrained(policy).config.vocab_size)
        computed, trained = counted(policy, rows, budget)
    lengths = [row.tokens * step.scale for row in rows]
    print(
        f"{len(rows)} of {step.groups * step.size} rows train; lengths: mean {sum(lengths) / len(lengths):.0f}, "
        f"maximum {max(lengths)}, divided by {step.scale}"
    )
    figures = {
        "one process": computed / trained,
        "TRL's layout": as_trl_pads(rows, step.groups * step.size) / trained,
        f"{given.processes} processes": divided(rows, budget, given.processes) / trained,
    }
    for name, ratio in figures.items():
        print(f"{name:<14}  {ratio:6.3f} tokens computed for each that trains")
    return figures


if __name__ == "__main__":
    main()
