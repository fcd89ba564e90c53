"""``rstar2 train``: train a model with a trainer, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rstar2_env.cli._options import ChatTemplate, LoraRank, ReportTo, Wrap


def train_command(
    name: Annotated[str, typer.Argument(metavar="TRAINER", help="`rstar2 trainers` lists them.")],
    model: Annotated[str | None, typer.Option(help="Folder or hub name of a causal language model.")] = None,
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="JSONL file, or a family with options [default: the environment's own problems]."
        ),
    ] = None,
    eval_problems: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="Held-out problems [default: a split of --problems]."),
    ] = None,
    holdout: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of a file that is held out, without --eval-problems.")
    ] = 0.05,
    env: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Gymnasium id, or your own (./mine.py:MyEnv) [default: rstar2/MathTool-v0]."),
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run [default: runs/TRAINER].")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimizer steps.")] = None,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", "--lr", help="Peak learning rate.")] = None,
    group_size: Annotated[int | None, typer.Option(min=2, help="Episodes of a group to train on (G).")] = None,
    problems_per_step: Annotated[int | None, typer.Option(min=1, help="Groups in one step.")] = None,
    eval_every: Annotated[int | None, typer.Option(min=0, help="Steps between held-out evaluations; 0: none.")] = None,
    save_every: Annotated[int | None, typer.Option(min=0, help="Steps between checkpoints; 0: only the last.")] = None,
    chat_template: ChatTemplate = None,
    lora_rank: LoraRank = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of every random choice.")] = None,
    report_to: ReportTo = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of training options, or the config.json of a run; the other arguments override it.",
            dir_okay=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other training option (temperature=0.7), or an option of a part (env.max_turns=3, "
            "selector.mode=rank); may be given again.",
        ),
    ] = None,
    wrap: Wrap = None,
    eval_wrap: Annotated[
        list[str] | None,
        typer.Option(
            "--eval-wrap",
            metavar="NAME[:OPTION=VALUE,...]",
            help="Wrapper of the evaluation environment; --wrap is for training only.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the newest checkpoint of the run.")] = False,
) -> None:
    """Train a model with the named trainer.

    The run's folder gets the best and the last weights, checkpoints, every episode and the metrics. docs/training.md
    lists every option that --set and --config take.
    """
    import importlib

    from rstar2_env.cli._options import training_options

    trainers = importlib.import_module("rstar2_env.trainers")
    trainers.TRAINERS.get(name)
    options: dict[str, Any] = trainers.read_config(config) if config else {}
    for key, value in training_options(set_, trainers.TrainConfig).items():
        options[key] = {**options.get(key, {}), **value} if isinstance(value, dict) else value
    given = {
        "model": model,
        "env": env,
        "output_dir": str(output_dir) if output_dir else None,
        "steps": steps,
        "learning_rate": learning_rate,
        "group_size": group_size,
        "problems_per_step": problems_per_step,
        "eval_every": eval_every,
        "save_every": save_every,
        "chat_template": chat_template,
        "lora_rank": lora_rank,
        "seed": seed,
        "report_to": report_to,
        "wrappers": wrap,
        "eval_wrappers": eval_wrap,
        "resume": resume or None,
    }
    options |= {key: value for key, value in given.items() if value is not None}
    options.setdefault("output_dir", f"runs/{name}")
    _add_problems(options, problems, eval_problems, holdout)
    trainer = trainers.make(name, **options)
    try:
        result = trainer.train()
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. {_how_to_go_on(Path(options['output_dir']))}", err=True)
        raise typer.Exit(130) from None
    finally:
        trainer.close()
    _report(result)


def _add_problems(options: dict[str, Any], problems: str | None, eval_problems: str | None, holdout: float) -> None:
    """Put the problems where the environments of training and of evaluation look for them."""
    from rstar2_env.problems import FAMILIES

    training = options["env_options"] = dict(options.get("env_options", {}))
    if problems is not None:
        training["problems"] = problems
    source = training.get("problems")
    if eval_problems is not None:
        evaluation = options.get("eval_env_options", {"split": "test"})
        options["eval_env_options"] = {**evaluation, "problems": eval_problems, "holdout": 0.0}
    elif isinstance(source, str) and source.partition(":")[0] not in FAMILIES and holdout:
        training.setdefault("holdout", holdout)


def _how_to_go_on(folder: Path) -> str:
    steps = sorted(int(found.name.rpartition("-")[2]) for found in folder.glob("checkpoint-*") if found.is_dir())
    if steps:
        return f"The same command with --resume continues after step {steps[-1]}, the newest checkpoint in {folder}."
    return f"There is no checkpoint in {folder} to continue from; --save-every N writes one every N steps."


def _report(result: Any) -> None:
    from rstar2_env.cli._tables import print_figures
    from rstar2_env.cli.demo import FIGURES, figure_text

    rows = {"run": str(result.output_dir), "model": str(result.model_dir), "best step": str(result.best_step)}
    if result.before and result.after:
        for figure, words in FIGURES.items():
            rows[words] = f"{figure_text(result.before, figure)} -> {figure_text(result.after, figure)}"
    print_figures("trained", rows)
