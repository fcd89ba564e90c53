"""``rstar2 run``: run the stages of a pipeline, or resume it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rstar2_env.cli._options import Trust
from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers


def run_command(
    ctx: typer.Context,
    pipeline: Annotated[
        str | None,
        typer.Argument(metavar="PIPELINE", help="Pipeline to run: a file, or a name that --list prints."),
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder to write the run to [default: runs/NAME].", file_okay=False),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="STAGE.NAME=VALUE",
            help="Set an option of a stage (stage1.steps=20, stage1.options.learning_rate=1e-5), or of the "
            "machine for which the cost is estimated (machine.gpus=64). Repeat the option to set several.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STAGE",
            help="Run this stage and all later stages again, and reuse the results of the earlier stages.",
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="STAGE", help="Run up to and including this stage.")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random seed of every stage that does not set its own seed.")
    ] = None,
    trust: Trust = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print each stage with its state and its estimated cost, and exit.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List the pipelines that this package contains, and exit.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print the progress of the stages.")] = False,
) -> None:
    """Run the stages of a pipeline in the order of their dependencies; skip stages that are up to date.

    The same command resumes a run that was killed or interrupted. If the options or inputs of a stage have changed,
    this stage and all stages that depend on it run again; their earlier results are set aside, not deleted.
    """
    from rstar2_env.cli._options import refuse_disagreement
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.options.declare import parse_options, read_loosely

    file, places = import_trainers("pipeline.file"), import_trainers("pipeline.places")
    run = import_trainers("pipeline.run")
    if list_:
        _list(file, places)
        return
    if pipeline is None:
        raise ConfigurationError(
            "No pipeline is named: give a pipeline file, or a name that `rstar2 run --list` prints."
        )
    settings: dict[str, Any] = parse_options(set_ or (), flag="--set ")
    if seed is not None:
        given = {name: (f"{name}={value}", value) for name, value in settings.items()}
        refuse_disagreement(ctx, {"seed": ("seed", seed)}, given, lambda _, value: read_loosely(value))
        settings["seed"] = seed
    read = file.read_pipeline(places.find_pipeline(pipeline), settings)
    folder = output_dir or Path("runs", read.name)
    if dry_run:
        from rstar2_env.cli._tables import print_table, print_text

        plan, table = import_trainers("pipeline.plan"), import_trainers("pipeline.table")
        shown = table.plan_table(run.PipelineRun(plan.PipelinePlan(read, folder)), begin=from_, until=until)
        print_table(table.STAGES, shown.stages, title=f"{read.name} in {folder}")
        print_table(table.COSTS, shown.costs, title="estimated costs")
        for line in shown.notes:
            print_text(line)
        return

    def report(text: str) -> None:
        if not quiet:
            say(text, err=True)

    try:
        run.run_pipeline(read, folder, begin=from_, until=until, progress=not quiet, say=report)
    except KeyboardInterrupt:
        say(f"Interrupted. To resume the run in {folder}, enter the same command again.", err=True)
        raise typer.Exit(130) from None
    say(f"The results of the run are in {folder}.")


def _list(file: Any, places: Any) -> None:
    from rstar2_env.cli._tables import print_list

    print_list({name: file.read_pipeline(path).summary for name, path in places.presets().items()})
