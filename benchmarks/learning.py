"""What recipes make of one cold start, over seeds: the proof that GRPO-RoC cleans up calls, and curves of many recipes.

    python benchmarks/learning.py compare [--seeds 5] [--recipes grpo+grpo_roc] [--faults 0,0.1]
    python benchmarks/learning.py curves [--seeds 3] [--recipes grpo+dapo]
    python benchmarks/learning.py page                 # tables and figure of what is there, into docs/

A model of half a million parameters is cold-started on tool-use traces with deliberate mistakes, on problems of two and
three operations that it keeps getting wrong; every run begins with that model. ``compare`` trains on ``--budget``
episodes, so that all arms take as many steps, and those that choose play more; ``curves`` plays as many with every
recipe, so that those that choose take fewer steps. A run is evaluated ten times on the same ``--problems`` held-out
problems, at the temperature of training and without injected faults. It is one process; what it came to is one line of
``results.jsonl`` in the folder, and a run that has one is not made again. One that was killed goes on from its last
checkpoint. ``--runs 3`` makes at most three that are missing.

What it does not show: anything about large models, or about time. A step takes some 3 seconds of one core, 4 where
twice as many episodes are played, evaluations included: with its 50 runs the comparison takes some 8 hours of one core,
and with their 60 the curves some 6.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENV = "rstar2/MathTool-v0"
ENV_OPTIONS: dict[str, Any] = {
    "dialect_options": {"system": "", "instruction": ""},
    "traceback": False,
    "max_turns": 5,
}
EPISODE_TOKENS, TURN_TOKENS = 256, 96
GROUPS, GROUP_SIZE = 8, 8
EVALUATIONS = 10
FAULTS = "fault_injection:rate={rate},kinds=timeout+lost+transient"


@dataclass(frozen=True)
class Arm:
    """A way of training: a recipe, and what is changed of it."""

    recipe: str
    options: Mapping[str, Any] = field(default_factory=dict)


ARMS: dict[str, Arm] = {
    "grpo": Arm("grpo"),
    "grpo_roc": Arm("grpo_roc"),
    "grpo_roc, rank": Arm("grpo_roc", {"selector": "roc:mode=rank"}),
    "grpo_roc_ties": Arm("grpo_roc_ties"),
    "grpo, call_penalty": Arm("grpo", {"advantage": "call_penalty:malformed=-0.5,failed=-0.5,how=add"}),
}
"""The arms of the comparison; every other name is a recipe as it is."""
CURVES = (
    "grpo",
    "grpo_roc",
    "grpo_roc_ties",
    "apo",
    "cispo",
    "clip_cov",
    "dapo",
    "dppo",
    "dr_grpo",
    "echo",
    "gigpo",
    "gmpo",
    "gspo",
    "kl_cov",
    "lite_ppo",
    "maxrl",
    "opo",
    "reinforce_pp",
    "rloo",
    "sapo",
)


@dataclass(frozen=True)
class Settings:
    """What all runs of a folder have in common.

    Attributes:
        budget: Episodes that a run trains on, or plays; what refill plays comes on top.
        problems: Held-out problems of an evaluation, one episode each.
        source: Where problems come from.
        traces: Traces of the cold start.
        sft_steps: Its optimizer steps.
        learning_rate: Of every run, whatever its recipe says.
    """

    budget: int = 9600
    problems: int = 1024
    source: str = "arithmetic:level=3"
    traces: int = 4000
    sft_steps: int = 800
    learning_rate: float = 2e-4


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        arm: Name of its arm, or of a recipe.
        seed: Its seed.
        faults: Share of calls in training that meet an injected fault.
        counts: Whether the budget is of episodes that are ``"trained"`` on or ``"played"``.
    """

    arm: str
    seed: int
    faults: float = 0.0
    counts: str = "trained"

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return f"{self.arm.replace(', ', '-')}-{self.counts}-faults{self.faults:g}-seed{self.seed}"


class Results:
    """The folder of runs that belong together.

    Args:
        folder: Where it is.
        settings: What the runs have in common; a folder of other settings is refused.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        folder.mkdir(parents=True, exist_ok=True)
        path, own = folder / "settings.json", dataclasses.asdict(settings)
        if path.exists() and (held := json.loads(path.read_text())) != own:
            raise SystemExit(f"{folder} holds runs of other settings ({held}); choose another --out.")
        path.write_text(json.dumps(own))

    def lines(self) -> list[dict[str, Any]]:
        """What each finished run came to; a line that a killed process left unfinished is passed over."""
        path = self.folder / "results.jsonl"
        found = []
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return found

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """The runs without a line, in their order."""
        names = [one.name for one in dataclasses.fields(Run)]
        done = {Run(**{name: line[name] for name in names}) for line in self.lines()}
        return [run for run in runs if run not in done]

    def add(self, run: Run, **found: Any) -> None:
        """Write the line of a run, all at once."""
        line = json.dumps({**dataclasses.asdict(run), **found}) + "\n"
        with open(self.folder / "results.jsonl", "ab") as file:
            if file.tell() and not self._ends():
                file.write(b"\n")
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def _ends(self) -> bool:
        with open(self.folder / "results.jsonl", "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def cold_start(results: Results) -> Path:
    """Make the model that every run begins with, once."""
    from functools import partial

    from rstar2_env.traces.writer import generate_traces
    from rstar2_env.trainers.api import sft
    from rstar2_env.trainers.backends.trl.model import be_quiet
    from rstar2_env.trainers.cold_start import read_traces
    from rstar2_env.trainers.demonstration.tiny import make_tiny_model
    from rstar2_env.wrappers.make import make_env

    folder, settings = results.folder / "cold-start", results.settings
    if (folder / "done").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    be_quiet()
    written = generate_traces(
        partial(make_env, ENV, problems=settings.source, **ENV_OPTIONS),
        settings.source,
        episodes=settings.traces,
        seed=0,
        error_rate=0.35,
        wrong_rate=0.3,
        call_mistakes=("undefined_name", "misspelt", "division_by_zero", "syntax"),
    )
    traces = results.folder / "traces.jsonl"
    traces.write_text("".join(json.dumps(trace.record()) + "\n" for trace in written))
    make_tiny_model(folder, seed=0)
    sft(
        read_traces(traces),
        model=str(folder),
        output_dir=str(folder),
        steps=settings.sft_steps,
        batch_size=32,
        rows_per_device=32,
        learning_rate=3e-3,
        seed=0,
        threads=1,
        progress=False,
    )
    (folder / "done").touch()
    return folder


def train(run: Run, results: Results) -> None:
    """Make one run, or go on with it, and write what it came to."""
    from rstar2_env.core.run_folder import read_run
    from rstar2_env.trainers.base import TRAINERS

    settings, arm = results.settings, ARMS.get(run.arm) or Arm(run.arm)
    start, folder, began = cold_start(results), results.folder / run.folder, time.process_time()
    oversample = TRAINERS.get(arm.recipe).configure({"model": "m"}, arm.options).rollout.oversample
    each = GROUPS * GROUP_SIZE * (oversample if run.counts == "played" else 1)
    steps = max(1, settings.budget // each)
    if not ((folder / "run.json").exists() and read_run(folder).finished):
        play(run, arm, steps, start, folder, settings)
    read = read_run(folder)
    curve = [
        {"step": step, "episodes": step * GROUPS * GROUP_SIZE * oversample, **figures(entry.episode for entry in held)}
        for step in read.evaluated_steps
        if (held := read.held_out(step))
    ]
    results.add(run, curve=curve, **final(curve), steps=steps, cpu_seconds=round(time.process_time() - began))
    for heavy in (*folder.glob("checkpoint-*"), folder / "episodes"):
        shutil.rmtree(heavy, ignore_errors=True)


def play(run: Run, arm: Arm, steps: int, start: Path, folder: Path, settings: Settings) -> None:
    """Train to the end, from the newest checkpoint if there is one.

    Args:
        run: The run.
        arm: Its arm.
        steps: Its optimizer steps.
        start: The model to begin with.
        folder: The run's folder.
        settings: What it has in common with others.
    """
    from rstar2_env.trainers.api import make

    begun = any(folder.glob("checkpoint-*"))
    if not begun:
        shutil.rmtree(folder, ignore_errors=True)  # it was killed before it had anything to go on with
    trainer = make(
        arm.recipe,
        **{
            "model": str(start),
            "env": ENV,
            "env_options": {**ENV_OPTIONS, "problems": settings.source},
            "wrappers": [FAULTS.format(rate=run.faults)] if run.faults else [],
            "output_dir": str(folder),
            "seed": run.seed,
            "steps": steps,
            "learning_rate": settings.learning_rate,
            "problems_per_step": GROUPS,
            "group_size": GROUP_SIZE,
            "tokens_per_device": 64 * EPISODE_TOKENS,
            "max_episode_tokens": EPISODE_TOKENS,
            "max_turn_tokens": TURN_TOKENS,
            "eval": {"every": max(1, steps // EVALUATIONS), "episodes": settings.problems},
            "save_every": max(1, steps // EVALUATIONS),
            "resume": begun,
            "threads": 1,
            "progress": False,
            **arm.options,
        },
    )
    try:
        trainer.train()
    finally:
        trainer.close()


def figures(episodes: Iterator[Any]) -> dict[str, float]:
    """Success, failed calls and lengths of held-out episodes; injected faults and our own failures are in none."""
    counted = [episode for episode in episodes if episode.available]
    right = [episode for episode in counted if episode.correct]
    calls = [status for episode in right for status in episode.statuses if status.counts]
    return {
        "success": len(right) / max(1, len(counted)),
        "failing": sum(status.is_error for status in calls) / max(1, len(calls)),
        "length": sum(episode.policy_tokens for episode in counted) / max(1, len(counted)),
        "length_right": sum(episode.policy_tokens for episode in right) / max(1, len(right)),
    }


def final(curve: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over the last fifth of the evaluations, that before the first step apart; the best success of all."""
    after = [point for point in curve if point["step"]]
    last = after[-max(1, len(after) // 5) :]
    names = ("success", "failing", "length", "length_right")
    found = {name: sum(point[name] for point in last) / len(last) for name in names}
    return {**found, "most_success": max(point["success"] for point in curve)}


def make_all(runs: Sequence[Run], results: Results, most: int | None = None) -> list[Run]:
    """Make the runs that are missing, one process after the other; returns those that are missing still.

    Args:
        runs: All runs.
        results: Where they are kept. Whoever comes second waits for the first, and makes what that one did not.
        most: Most runs to make.
    """
    with open(results.folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for run in results.missing(runs)[:most]:
            told = json.dumps([dataclasses.asdict(run), str(results.folder), dataclasses.asdict(results.settings)])
            print(f"{run.arm}, seed {run.seed}, faults {run.faults:g} ...", flush=True)
            log = results.folder / f"{run.folder}.log"
            with open(log, "a") as file:
                code = subprocess.run([sys.executable, __file__, "one", told], stdout=file, stderr=file).returncode
            if code:
                print(f"  it ended with {code}: {log}", flush=True)
    return results.missing(runs)


def runs_of(what: str, seeds: int, recipes: Sequence[str] = (), faults: Sequence[float] = ()) -> list[Run]:
    """The runs of the comparison or of the curves, seed by seed, so that a few of them compare already.

    Args:
        what: ``compare`` or ``curves``.
        seeds: How many seeds.
        recipes: Arms or recipes; those of ``ARMS`` or ``CURVES`` if there are none.
        faults: Shares of injected faults; none and a tenth, for the comparison, if there are none.
    """
    arms = list(recipes) or (list(ARMS) if what == "compare" else list(CURVES))
    shares = list(faults) or ([0.0, 0.1] if what == "compare" else [0.0])
    counts = "trained" if what == "compare" else "played"
    return [Run(arm, seed, share, counts) for seed in range(seeds) for share in shares for arm in arms]


def main(given: Sequence[str] | None = None) -> int:
    """Make runs, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("compare", "curves", "page", "one"))
    parser.add_argument("run", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "learning")
    parser.add_argument("--runs", type=int, help="make at most so many")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--recipes", type=lambda text: text.split("+"), default=[], help="joined by +")
    parser.add_argument("--faults", type=lambda text: [float(one) for one in text.split(",")], default=[])
    for option in dataclasses.fields(Settings):
        parser.add_argument(f"--{option.name.replace('_', '-')}", type=type(option.default), default=option.default)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where page writes")
    options = parser.parse_args(given)
    if options.what == "one":
        run, folder, settings = json.loads(options.run)
        train(Run(**run), Results(Path(folder), Settings(**settings)))
        return 0
    names = [option.name for option in dataclasses.fields(Settings)]
    results = Results(options.out, Settings(**{name: getattr(options, name) for name in names}))
    if options.what == "page":
        from learning_page import write_page

        print(write_page(results.lines(), dataclasses.asdict(results.settings), options.docs))
        return 0
    seeds = options.seeds or {"compare": 5, "curves": 3}[options.what]
    left = make_all(runs_of(options.what, seeds, options.recipes, options.faults), results, options.runs)
    print(f"{len(left)} runs are missing; `python benchmarks/learning.py page` writes the tables of what is there.")
    return int(bool(left) and options.runs is None)


if __name__ == "__main__":
    raise SystemExit(main())
