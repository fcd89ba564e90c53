"""Time of an optimizer step on given rows: this package's trainer, and TRL's own on the same tokens.

    python benchmarks/train_step.py [--runs 7] [--groups 8] [--scale 64] [--rejected 0.0] [--equal]
    python benchmarks/train_step.py --prefixes [--prompt 400] [--own 150]

Both are whole trainers of one process; TRL's gets the rows through its ``rollout_func``, with as many rows in a
micro-batch as fit into the same budget of tokens at full width. Runs alternate, and the figure is the median of the
ratios of neighbours, in CPU seconds of the steps after the first. Rewards and advantages are given; the engine and the
episodes are not part of it.

``--equal`` gives every row the same length, so that nothing is gained by sorting and trimming. ``--rejected 0.7``
rejects most groups, which TRL computes as rows of masked tokens.

``--prefixes`` compares this package's trainer with itself, with and without ``share_prefixes``, on groups of 8 rows
that share their prompt. It also prints the tokens that are computed for each trained token.

What it does not show: an accelerator, whose attention gains more from the missing mask than a CPU's.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from rollout_trainers import PLAIN, given_reward, given_rows, step_seconds, trl_config
from step_rows import Step, group_rows, rows_of
from transformers import AutoModelForCausalLM
from trl import GRPOTrainer

from rstar2_env.core.row import Row
from rstar2_env.trainers.backends.trl.arguments import arguments
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer
from rstar2_env.trainers.demonstration.tiny import make_tiny_model
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection
from rstar2_env.trainers.losses.ppo_clip import PpoClip

STEPS = 4
"""Optimizer steps of one run, of which the first is not counted."""


class Given:
    """A collector of the same rows at every step."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows, self.groups = rows, []

    def collect(self, step: int) -> Given:
        """Return the rows."""
        return self


class Steps:
    """Optimizer steps on the same rows by both trainers.

    Args:
        policy: Folder of the model.
        rows: The rows that train.
        batch: Rows of TRL's generation batch; those that are missing are rows of one masked token.
        budget: Tokens of a micro-batch.
    """

    def __init__(self, policy: Path, rows: list[Row], batch: int, budget: int) -> None:
        self._policy, self._rows, self._batch = policy, rows, batch
        self._width = max(len(row.prompt_ids) for row in rows) + max(len(row.completion_ids) for row in rows)
        self._budget = max(budget, self._width)

    def ours(self) -> float:
        """Mean CPU seconds of a step of this package's trainer."""
        return self._own(share_prefixes=True)

    def separate(self) -> float:
        """Mean CPU seconds of a step of this package's trainer that computes each row separately."""
        return self._own(share_prefixes=False)

    def _own(self, *, share_prefixes: bool) -> float:
        def build(folder: str, **options: Any) -> CollectorTrainer:
            trainer = CollectorTrainer(
                collector=Given(self._rows),
                objective=Objective([PpoClip()], TokenMean(), NoCorrection()),
                shape=BatchLayout(self._budget, share_prefixes=share_prefixes),
                args=arguments(folder, **PLAIN, max_steps=STEPS),
                **options,
            )
            self._sums = trainer.sums
            return trainer

        seconds = step_seconds(self._policy, build)
        figures = self._sums.take()
        self.computed_share = figures["tokens/computed"][0] / figures["tokens/trained"][0]
        return seconds

    def trl(self) -> float:
        """Mean CPU seconds of a step of TRL's trainer."""
        given = given_rows(self._rows, self._batch)
        fitting = [one for one in range(1, self._batch + 1) if self._batch % one == 0]
        rows = max(one for one in fitting if one * self._width <= self._budget)
        return step_seconds(
            self._policy,
            lambda folder, **options: GRPOTrainer(
                rollout_func=lambda prompts, trainer: given,
                reward_funcs=[given_reward],
                train_dataset=Dataset.from_dict({"prompt": ["-"] * self._batch}),
                args=trl_config(
                    rows,
                    8,
                    self._width,
                    output_dir=folder,
                    max_steps=STEPS,
                    gradient_accumulation_steps=self._batch // rows,
                    steps_per_generation=self._batch // rows,
                ),
                **options,
            ),
        )


def main(arguments: Sequence[str] | None = None) -> float:
    """Print the times of each pair of runs; return the median of their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="pairs of runs")
    parser.add_argument("--groups", type=int, default=8, help="groups of 8 rows")
    parser.add_argument("--rejected", type=float, default=0.0, help="share of the groups of which nothing trains")
    parser.add_argument("--scale", type=int, default=64, help="what every length (mean 6K, at most 12K) is divided by")
    parser.add_argument("--equal", action="store_true", help="all rows as long as the longest")
    parser.add_argument("--prefixes", action="store_true", help="compare rows with shared prefixes and separate rows")
    parser.add_argument("--prompt", type=int, default=400, help="with --prefixes, tokens of a prompt")
    parser.add_argument("--own", type=int, default=150, help="with --prefixes, tokens of a row after the prompt")
    parser.add_argument("--hidden", type=int, default=128, help="width of the model")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    step = Step(groups=given.groups, rejected=given.rejected, scale=given.scale)
    with tempfile.TemporaryDirectory() as folder:
        policy = make_tiny_model(Path(folder) / "policy", hidden=given.hidden, layers=2)
        vocabulary = AutoModelForCausalLM.from_pretrained(policy).config.vocab_size
        if given.prefixes:
            rows = group_rows(given.groups, step.size, given.prompt, given.own, vocabulary)
            return _compare_prefixes(Steps(policy, rows, len(rows), 16384), given.runs)
        rows = rows_of(step, vocabulary)
        if given.equal:
            longest = max(rows, key=lambda row: len(row.completion_ids))
            fields = {"completion_ids": longest.completion_ids, "mask": longest.mask, "logprobs": longest.logprobs}
            rows = [dataclasses.replace(row, episode=_as(row, longest), **fields) for row in rows]
        steps = Steps(policy, rows, step.groups * step.size, step.tokens(4 * step.longest))
        ratios = []
        for number in range(given.runs):
            pair = (steps.ours, steps.trl) if number % 2 else (steps.trl, steps.ours)
            times = {which.__name__: which() for which in pair}
            ratios.append(times["ours"] / times["trl"])
            print(f"ours {times['ours']:7.3f} s   TRL {times['trl']:7.3f} s   ratio {ratios[-1]:.3f}", flush=True)
    median = statistics.median(ratios)
    print(f"median of the ratios: {median:.3f}  ({min(ratios):.3f} to {max(ratios):.3f})")
    return median


def _compare_prefixes(steps: Steps, runs: int) -> float:
    ratios = []
    for number in range(runs):
        pair = (steps.ours, steps.separate) if number % 2 else (steps.separate, steps.ours)
        times, computed = {}, {}
        for which in pair:
            times[which.__name__] = which()
            computed[which.__name__] = steps.computed_share
        ratios.append(times["ours"] / times["separate"])
        print(
            f"shared {times['ours']:7.3f} s   separate {times['separate']:7.3f} s   ratio {ratios[-1]:.3f}   tokens "
            f"computed per trained token: shared {computed['ours']:.3f}, separate {computed['separate']:.3f}",
            flush=True,
        )
    median = statistics.median(ratios)
    print(f"median of the ratios: {median:.3f}  ({min(ratios):.3f} to {max(ratios):.3f})")
    return median


def _as(row: Row, other: Row) -> Any:
    """The episode of a row, with the turns of another."""
    return dataclasses.replace(row.episode, steps=other.episode.steps)


if __name__ == "__main__":
    main()
