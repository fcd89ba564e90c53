"""Train recipes from one cold start over seeds: the comparison of failing calls, and the curves of many recipes.

    python benchmarks/learning.py compare [--seeds 5] [--recipes grpo+grpo_roc] [--faults 0,0.1]
    python benchmarks/learning.py curves [--seeds 3] [--recipes gspo+dapo] [--world teaching]
    python benchmarks/learning.py page                 # tables and figure of what is there, into docs/
    python benchmarks/learning.py table                # the comparison in short, printed

A model of a tenth of a million parameters, to which words and numbers up to 99 are a token each, is cold-started on
tool-use traces most of which begin with a call that fails, on problems whose numbers it copies badly. In the world
``indifferent`` the others make their call twice, so that an episode whose first call fails ends right as often as one
whose first call runs: rewards say nothing of failing calls. In the world ``teaching`` they do not, and rewards teach a
policy to avoid failing calls. Every run of a world begins with the same model. ``compare`` trains on ``--budget``
episodes, so that all arms take as many steps, and those that choose play more; ``curves`` plays ``--curve-budget`` with
every recipe, so that those that choose take fewer steps. Evaluations are of the same held-out problems, at the
temperature of training and without injected faults. A run is one process; its result is one line of
``--results`` (``benchmarks/learning_WORLD.jsonl`` in the repository). A run with a result is not repeated. A run that
was killed resumes from its last checkpoint in ``--out``. ``--runs 3`` makes at most three missing runs. Other settings
(``--source``, ...) need another ``--results``.

What it does not show: anything about large models, or about time.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import gc
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import learning_cause
import learning_sandbox
from learning_runs import ARMS, CURVES, LAST, WORLDS, Arm, Results, Run, Settings, arm_of

ROOT = Path(__file__).resolve().parent.parent
RESULTS = {name: ROOT / "benchmarks" / f"learning_{name}.jsonl" for name in WORLDS}
MATH = "rstar2/MathTool-v0"
OPTIONS: dict[str, Any] = {"dialect_options": {"system": "", "instruction": ""}}
"""Options of every environment."""
MATH_OPTIONS: dict[str, Any] = {"sandbox": learning_sandbox.SUMS, "traceback": False, "max_turns": 5}
"""Further options of ``MATH``."""
EPISODE_TOKENS, TURN_TOKENS = 160, 48
GROUPS, GROUP_SIZE = 8, 8
FAULTS = "fault_injection:rate={rate},kinds=timeout+lost+transient"
MOST_STEPS = 20_000
"""Optimizer steps that no budget of tokens allows."""
FREQUENT = 40
"""Minimum number of occurrences in the traces for a word to get its own token."""


def cold_start(folder: Path, settings: Settings) -> Path:
    """Make the model that every run begins with, once.

    Args:
        folder: Where runs are kept.
        settings: The settings of the cold start; a folder with other settings is rejected.
    """
    from rstar2_env.traces.reading import read_traces
    from rstar2_env.trainers.api import sft
    from rstar2_env.trainers.demonstration.tiny import make_tiny_model

    untrained, start = folder / "untrained", folder / "cold-start"
    done, own = folder / "cold-start.json", dataclasses.asdict(settings)
    if done.exists():
        if (held := json.loads(done.read_text())) != own:
            raise SystemExit(f"{folder} holds runs of other settings ({held}); choose another --out.")
        return start
    for earlier in (untrained, start):
        shutil.rmtree(earlier, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    records = demonstrations(settings)
    traces = folder / "traces.jsonl"
    traces.write_text("".join(json.dumps(record) + "\n" for record in records))
    words = words_of(message["content"] for record in records for message in record["messages"])
    make_tiny_model(untrained, hidden=settings.hidden, layers=settings.layers, seed=0, words=words)
    sft(
        read_traces(traces),
        model=str(untrained),
        output_dir=str(start),
        steps=settings.sft_steps,
        batch_size=32,
        rows_per_device=32,
        learning_rate=5e-3,
        seed=0,
        threads=1,
        progress=False,
    )
    done.write_text(json.dumps(own))
    return start


def env_options(settings: Settings) -> dict[str, Any]:
    """Return the options of the settings' environment."""
    return {**OPTIONS, **(MATH_OPTIONS if settings.env == MATH else {}), "problems": settings.source}


def demonstrations(settings: Settings) -> list[dict[str, Any]]:
    """Return the traces of the cold start: with the tool, written with mistakes; else, the gold answers."""
    from functools import partial
    from itertools import islice

    from rstar2_env.agents.oracle import Oracle
    from rstar2_env.evaluation.play.episode import play_episode
    from rstar2_env.problems import choices, load_problems
    from rstar2_env.traces.writer import generate_traces
    from rstar2_env.wrappers.make import make_env

    make = partial(make_env, settings.env, **env_options(settings))
    if settings.env != MATH:
        env, agent, problems = make(), Oracle(), choices(load_problems(settings.source), seed=0)
        drawn = enumerate(islice(problems, settings.traces))
        episodes = [play_episode(env, agent, seed=seed, problem=problem) for seed, problem in drawn]
        env.close()
        return [{"messages": [message.record() for message in episode.messages]} for episode in episodes]
    written = generate_traces(
        make,
        settings.source,
        episodes=settings.traces,
        seed=0,
        error_rate=settings.error_rate,
        wrong_rate=settings.wrong_rate,
        call_mistakes=settings.call_mistakes.split("+"),
    )
    records = [trace.record() for trace in written]
    return [twice(record) for record in records] if settings.twice else records


def twice(record: dict[str, Any]) -> dict[str, Any]:
    """A trace as it was, or with its first call and the response to it twice if that call does not fail."""
    messages = record["messages"]
    if record["call_mistake"] is None:
        at = next(number for number, message in enumerate(messages) if message["role"] == "assistant")
        messages[at:at] = messages[at : at + 2]
    return record


def words_of(texts: Iterator[str]) -> list[str]:
    """The words that are frequent in texts, each with the space before it, and the numbers of two digits."""
    counts = Counter(word for text in texts for word in re.findall(r" ?[A-Za-z]{2,}", text))
    frequent = [word for word, count in counts.items() if count >= FREQUENT]
    return [*frequent, *map(str, range(10, 100))]


def train(run: Run, results: Results, out: Path) -> None:
    """Start or resume a run, and write its result.

    Args:
        run: The run.
        results: Where that is written.
        out: Where runs are kept.
    """
    from rstar2_env.core.run_folder import read_run
    from rstar2_env.trainers.base import TRAINERS

    settings, tokens = results.settings, run.counts == "tokens"
    arm = Arm(run.arm) if tokens else arm_of(run.arm)
    start, folder, began = cold_start(out, settings), out / run.folder, time.process_time()
    config = TRAINERS.get(arm.recipe).configure({"model": "m"}, arm.options)
    oversample = config.rollout.oversample
    each = GROUPS * GROUP_SIZE
    played = run.counts == "played"
    steps = max(1, settings.curve_budget // (each * oversample) if played else settings.budget // each)
    steps = MOST_STEPS if tokens else steps
    if not ((folder / "run.json").exists() and read_run(folder).finished):
        play(run, arm, steps, start, folder, settings)
    read = read_run(folder)
    curve = [
        {"step": step, "episodes": step * GROUPS * GROUP_SIZE * oversample, **figures(entry.episode for entry in held)}
        for step in read.evaluated_steps
        if (held := read.held_out(step))
    ]
    told = {"curve": curve, **final(curve), "steps": curve[-1]["step"], "cpu_seconds": time.process_time() - began}
    if tokens:
        told |= of_tokens(read)
    elif not played:
        till = next(point["step"] for point in curve if point["step"])
        penalty = config.parts.advantage.options.get("failed") or 0.0
        told |= {"cause_steps": till, "causes": learning_cause.causes(read, till, penalty)}
    results.add(run, **json.loads(json.dumps(told), parse_float=lambda text: round(float(text), 5)))
    for heavy in (*folder.glob("checkpoint-*"), *([] if tokens else [folder / "episodes"])):
        shutil.rmtree(heavy, ignore_errors=True)


def of_tokens(read: Any) -> dict[str, Any]:
    """Count what a run of the bake-off generated in training, refills included."""
    played = [entry.episode for step in read.steps for entry in read.episodes(step)]
    return {"tokens": sum(episode.policy_tokens for episode in played), "episodes": len(played)}


def play(run: Run, arm: Arm, steps: int, start: Path, folder: Path, settings: Settings) -> None:
    """Train to the end, from the newest checkpoint if there is one.

    Args:
        run: The run.
        arm: Its arm.
        steps: Its optimizer steps.
        start: The model to begin with.
        folder: The run's folder.
        settings: The settings that all runs share.
    """
    from rstar2_env.trainers.api import make

    begun = any(folder.glob("checkpoint-*"))
    if not begun:
        shutil.rmtree(folder, ignore_errors=True)  # it was killed before its first checkpoint
    every = evaluated_every(run, steps, settings)
    problems = {"trained": settings.problems, "played": settings.curve_problems, "tokens": settings.bakeoff_problems}
    hooks = [f"token_budget:tokens={settings.token_budget}"] if run.counts == "tokens" else []
    trainer = make(
        arm.recipe,
        **{
            "model": str(start),
            "env": settings.env,
            "env_options": env_options(settings),
            "wrappers": [FAULTS.format(rate=run.faults)] if run.faults else [],
            "output_dir": str(folder),
            "seed": run.seed,
            "steps": steps,
            "temperature": 1.0,
            "learning_rate": run.rate or settings.learning_rate,
            "problems_per_step": GROUPS,
            "group_size": GROUP_SIZE,
            "tokens_per_device": 2 * GROUPS * GROUP_SIZE * EPISODE_TOKENS,
            "max_episode_tokens": EPISODE_TOKENS,
            "max_turn_tokens": TURN_TOKENS,
            "eval": {"every": every, "episodes": problems[run.counts]},
            "hook": hooks,
            "save_every": every,
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


def evaluated_every(run: Run, steps: int, settings: Settings) -> int:
    """Steps between evaluations: two are made at the end of a run of the comparison, one of the bake-off."""
    if run.counts == "trained":
        return max(1, steps - max(1, steps // settings.evaluations))
    return steps if run.counts == "tokens" else max(1, steps // settings.curve_evaluations)


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
    """Means over the evaluations in the last fifth of the steps, and the best success of all evaluations."""
    last = [point for point in curve if point["step"] > LAST * curve[-1]["step"]]
    names = ("success", "failing", "length", "length_right")
    found = {name: sum(point[name] for point in last) / len(last) for name in names}
    return {**found, "most_success": max(point["success"] for point in curve)}


def make_all(runs: Sequence[Run], results: Results, out: Path, most: int | None = None) -> list[Run]:
    """Make the runs that are missing, one process after the other; returns those that are missing still.

    Args:
        runs: All runs.
        results: The file of results. A second process waits for the first, and makes the remaining runs.
        out: Folder of the runs.
        most: Maximum number of runs to make.
    """
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if left := results.missing(runs)[:most]:
            told = json.dumps([[dataclasses.asdict(run) for run in left], str(results.path), str(out)])
            subprocess.run([sys.executable, __file__, "work", told], check=True)
    return results.missing(runs)


def work(runs: Sequence[Run], results: Results, out: Path) -> None:
    """Make runs, each in a fork of this process, which has imported what takes long; it computes nothing itself."""
    import rstar2_env.trainers.backends.trl.run.build  # noqa: F401 - takes long
    from rstar2_env.trainers.backends.trl.model import be_quiet

    be_quiet()
    gc.collect()
    gc.freeze()  # else every collection in a run looks through all that was imported
    for run in runs:
        print(f"{run.arm}, seed {run.seed}, faults {run.faults:g} ...", flush=True)
        log, began = out / f"{run.folder}.log", time.monotonic()
        one = multiprocessing.get_context("fork").Process(target=_logged, args=(run, results, out, log))
        one.start()
        one.join()
        if one.exitcode:
            print(f"  it ended with {one.exitcode}: {log}", flush=True)
        else:
            print(f"  {time.monotonic() - began:.0f} s", flush=True)


def _logged(run: Run, results: Results, out: Path, log: Path) -> None:
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        train(run, results, out)
    except BaseException:
        traceback.print_exc()
        raise


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


def told_of(read: Mapping[str, Results]) -> dict[str, tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Return the lines and the settings of each file of results, as the pages take them."""
    return {name: (one.lines(), dataclasses.asdict(one.settings)) for name, one in read.items()}


def main(given: Sequence[str] | None = None) -> int:
    """Make runs, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("compare", "curves", "page", "table", "work"))
    parser.add_argument("told", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--world", choices=list(WORLDS), default=next(iter(WORLDS)), help="what the cold start learned")
    parser.add_argument("--results", type=Path, help="file of results; its runs are not repeated")
    parser.add_argument("--out", type=Path, help="folder of the runs")
    parser.add_argument("--runs", type=int, help="maximum number of runs to make")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--recipes", type=lambda text: text.split("+"), default=[], help="joined by +")
    parser.add_argument("--faults", type=lambda text: [float(one) for one in text.split(",")], default=[])
    names = [option.name for option in dataclasses.fields(Settings)]
    for option in dataclasses.fields(Settings):
        parser.add_argument(f"--{option.name.replace('_', '-')}", type=type(option.default), help=f"{option.default}")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where page writes")
    options = parser.parse_args(given)
    if options.what == "work":
        runs, path, out = json.loads(options.told)
        work([Run(**run) for run in runs], Results(Path(path), {}), Path(out))
        return 0
    if options.what == "table":
        from learning_compare import short_table

        results = Results(options.results or RESULTS[options.world], {})
        print(short_table(results.lines(), dataclasses.asdict(results.settings)), end="")
        return 0
    if options.what == "page":
        from bakeoff import open_results
        from learning_page import write_page

        read = {name: Results(path, {}) for name, path in RESULTS.items()}
        print(write_page(told_of(read), options.docs, told_of(open_results())))
        return 0
    asked = {name: value for name in names if (value := getattr(options, name)) is not None}
    results = Results(options.results or RESULTS[options.world], {**WORLDS[options.world], **asked})
    out = options.out or ROOT / "runs" / "learning" / options.world
    seeds = options.seeds or {"compare": 5, "curves": 3}[options.what]
    left = make_all(runs_of(options.what, seeds, options.recipes, options.faults), results, out, options.runs)
    print(f"{len(left)} runs are missing; `python benchmarks/learning.py page` writes the tables of what is there.")
    return int(bool(left) and options.runs is None)


if __name__ == "__main__":
    raise SystemExit(main())
