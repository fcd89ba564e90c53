"""The demonstration: a tiny, randomly initialized model learns to use the tool, on a CPU, in minutes.

Stages: create the model, write tool-use traces with deliberate mistakes, cold-start the model on them, run each trainer
from that cold start, evaluate the cold start and each trained model with several samples per problem, and compare them.
Finished stages are skipped, and an interrupted stage resumes. Not covered: real models; run each stage yourself
(``rstar2 traces``, ``rstar2 sft``, ``rstar2 train``, ``rstar2 eval``, ``rstar2 compare``).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import begin_lines, write_json
from rstar2_env.core.files.outputs import begin_folder, kind_of, list_files, replacing
from rstar2_env.core.progress import ReportProgress, progress
from rstar2_env.core.run_folder import read_run
from rstar2_env.core.run_folder.layout import RUN_FILE
from rstar2_env.evaluation.comparison.compare import Comparison, compare
from rstar2_env.evaluation.comparison.picture import draw
from rstar2_env.evaluation.run import evaluate
from rstar2_env.evaluation.stored.runs import find_stored
from rstar2_env.traces.reading import read_traces
from rstar2_env.traces.writer import generate_traces
from rstar2_env.wrappers.make import make_env

from ..api import make, sft
from ..backends.trl.model import be_quiet
from ..base import TrainResult
from ..record.checkpoints import newest_checkpoint
from ..record.plot import draw_runs
from .options import DemoOptions
from .tiny import make_tiny_model

ENV = "rstar2/MathTool-v0"
ENV_OPTIONS: dict[str, Any] = {
    "problems": "arithmetic:level=2",
    # A model trained only on these problems needs no instructions and no tracebacks.
    "dialect_options": {"system": "", "instruction": ""},
    "traceback": False,
    "max_turns": 5,
}
MAX_EPISODE_TOKENS, MAX_TURN_TOKENS = 192, 64
UNTRAINED, COLD_START = "untrained", "cold-start"
TRACES, BEGUN, CURVES, COMPARISON = "traces.jsonl", "cold-start.json", "learning.png", "compare.png"
"""Names of files in the demonstration's folder; ``BEGUN`` records the options of the cold start."""
TITLE = "A 0.46 M-parameter model learns to use a Python tool (rstar2/MathTool-v0)"
"""Title of the learning curves."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The result of the demonstration.

    Attributes:
        runs: Result of each trainer, by name.
        picture: File with the learning curves.
        comparisons: Comparison of each trained model with the cold start, on the same held-out problems.
        comparison_picture: File with the curves of pass@k.
        seconds: Wall-clock seconds of each stage in this call, by name. A cold start that was already finished is left
            out; other finished stages take almost no time.
    """

    runs: Mapping[str, TrainResult]
    picture: Path
    comparisons: Sequence[Comparison]
    comparison_picture: Path
    seconds: Mapping[str, float]


def run_demo(options: DemoOptions, *, overwrite: bool = False) -> DemoResult:
    """Run every stage that is not finished.

    Args:
        options: See ``DemoOptions``.
        overwrite: Replace the demonstration in the folder, instead of continuing it.

    Raises:
        ConfigurationError: The folder holds something other than a demonstration.
    """
    folder = Path(options.output_dir)
    resume = options.check_folder(overwrite=overwrite)
    begin_folder(folder, "demo", TRACES, BEGUN, CURVES, COMPARISON, resume=bool(resume), option="output_dir")
    models = [UNTRAINED, COLD_START, *options.trainers]
    list_files(folder, folders=dict.fromkeys(part for name in models for part in (name, f"eval-{name}")))
    seconds: dict[str, float] = {}
    start = _cold_start(folder, options, seconds)
    runs: dict[str, TrainResult] = {}
    for name in options.trainers:
        began = time.monotonic()
        runs[name] = _train(name, folder / name, start, options)
        seconds[name] = time.monotonic() - began
    curves = draw_runs({name: run.history for name, run in runs.items()}, title=TITLE)
    picture = curves.save(folder / CURVES, overwrite=True)
    evaluations = [_evaluate(start, _evaluation_of(start), options, seconds)]
    for name, run in runs.items():
        evaluations.append(_evaluate(run.model_dir, _evaluation_of(folder / name), options, seconds))
    comparisons = compare([find_stored(str(evaluation)) for evaluation in evaluations], seed=options.seed)
    compared = draw(comparisons, folder / COMPARISON, overwrite=True)
    return DemoResult(runs, picture, comparisons, compared, seconds)


def _cold_start(folder: Path, options: DemoOptions, seconds: dict[str, float]) -> Path:
    start, traces, begun = folder / COLD_START, folder / TRACES, folder / BEGUN
    asked = {name: getattr(options, name) for name in ("traces", "error_rate", "wrong_rate", "sft_steps", "seed")}
    same = begun.exists() and json.loads(begun.read_text()) == asked
    if same and (start / RUN_FILE).exists() and read_run(start).finished:
        _say(options, f"The cold start in {start} is already finished and is reused; --overwrite starts it again.")
        return start
    _clear_evaluation(start)
    if not same:
        begun.unlink(missing_ok=True)
        _write_traces(traces, options, seconds)
        write_json(begun, asked)
    began = time.monotonic()
    be_quiet()
    resume = same and newest_checkpoint(start) is not None
    if not resume:
        make_tiny_model(folder / UNTRAINED, seed=options.seed)
    sft(
        read_traces(traces),
        model=str(folder / UNTRAINED),
        output_dir=str(start),
        steps=options.sft_steps,
        batch_size=32,
        rows_per_device=32,
        learning_rate=3e-3,
        seed=options.seed,
        resume=resume,
        overwrite=not resume,
        threads=options.threads,
        progress=options.progress,
    )
    seconds["cold start"] = time.monotonic() - began
    return start


def _write_traces(file: Path, options: DemoOptions, seconds: dict[str, float]) -> None:
    began = time.monotonic()
    _say(options, f"Writing {options.traces} traces; each is checked in the environment ...")
    written = generate_traces(
        partial(make_env, ENV, **ENV_OPTIONS),
        ENV_OPTIONS["problems"],
        episodes=options.traces,
        seed=options.seed,
        error_rate=options.error_rate,
        wrong_rate=options.wrong_rate,
        call_mistakes=("undefined_name", "misspelt", "division_by_zero", "syntax"),
    )

    def lines(report: ReportProgress) -> Iterator[str]:
        for number, trace in enumerate(written, 1):
            report(number, options.traces)
            yield json.dumps(trace.record()) + "\n"

    with progress("writing traces", total=options.traces, show=options.progress) as report:
        begin_lines(file, lines(report)).close()
    seconds["traces"] = time.monotonic() - began


def _train(name: str, folder: Path, start: Path, options: DemoOptions) -> TrainResult:
    finished = folder / "result.json"
    asked = {"steps": options.steps, "learning_rate": options.learning_rate, "seed": options.seed}
    if finished.exists():
        kept = json.loads(finished.read_text())
        if kept.pop("asked") == asked:
            _say(options, f"The run in {folder} is already finished and is reused; --overwrite starts it again.")
            history = read_run(folder).metrics()
            return TrainResult(folder, Path(kept.pop("model_dir")), history=history, **kept)
    _clear_evaluation(folder)
    resume = not finished.exists() and newest_checkpoint(folder) is not None
    trainer = make(
        name,
        model=str(start),
        env=ENV,
        env_options=ENV_OPTIONS,
        output_dir=str(folder),
        seed=options.seed,
        steps=options.steps,
        learning_rate=options.learning_rate,
        problems_per_step=8,
        group_size=8,
        tokens_per_device=16 * MAX_EPISODE_TOKENS,  # small micro-batches of rows of similar length, with little padding
        max_episode_tokens=MAX_EPISODE_TOKENS,
        max_turn_tokens=MAX_TURN_TOKENS,
        eval={"every": max(1, options.steps // 5), "episodes": options.eval_episodes},
        save_every=max(1, options.steps // 2),
        resume=resume,
        overwrite=not resume,
        threads=options.threads,
        progress=options.progress,
    )
    with closing(trainer):
        result = trainer.train()
    record = {
        "asked": asked,
        "model_dir": str(result.model_dir),
        "before": result.before,
        "after": result.after,
        "best_step": result.best_step,
    }
    list_files(folder, finished.name)
    with replacing(finished) as partial:
        partial.write_text(json.dumps(record))  # with NaN, unlike write_json
    return result


def _clear_evaluation(model: Path) -> None:
    """Remove the evaluation of a stage's model, before the stage runs again."""
    folder = _evaluation_of(model)
    if kind_of(folder) is not None:
        begin_folder(folder, "evaluation")


def _evaluation_of(model: Path) -> Path:
    """Return the path at which the evaluation of a stage's model is saved."""
    return model.parent / f"eval-{model.name}"


def _evaluate(model: Path, folder: Path, options: DemoOptions, seconds: dict[str, float]) -> Path:
    """Evaluate a model on the held-out problems, several times each; continue an unfinished evaluation.

    Args:
        model: Folder of the model.
        folder: Folder for the evaluation.
        options: Options of the demonstration.
        seconds: Receives the seconds of the evaluation, by the name of ``folder``.

    Returns:
        ``folder``.
    """
    began = time.monotonic()
    _say(options, f"Evaluating {model}: {options.eval_problems} problems, {options.eval_samples} samples of each ...")
    arguments: dict[str, Any] = {
        "model": model,
        "env_options": ENV_OPTIONS,
        "episodes": options.eval_problems,
        "n": options.eval_samples,
        "seed": options.seed,
        "model_options": {"max_episode_tokens": MAX_EPISODE_TOKENS, "max_turn_tokens": MAX_TURN_TOKENS},
        "out": folder,
        "progress": options.progress,
    }
    try:
        evaluate(ENV, **arguments, resume=True)
    except ConfigurationError:
        # The file holds an evaluation with other options.
        evaluate(ENV, **arguments, overwrite=True)
    seconds[folder.name] = time.monotonic() - began
    return folder


def _say(options: DemoOptions, words: str) -> None:
    if options.progress:
        print(words, file=sys.stderr, flush=True)
