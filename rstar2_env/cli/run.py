"""``rstar2 run``: run the stages of a pipeline, or go on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def run_command(
    pipeline: Annotated[
        str | None,
        typer.Argument(metavar="PIPELINE", help="File of a pipeline, or the name of one that --list shows."),
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run [default: runs/NAME].", file_okay=False)
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="STAGE.NAME=VALUE",
            help="Option of a stage (stage1.steps=20, stage1.options.learning_rate=1e-5), or of the machine that costs "
            "are computed for (machine.gpus=64); may be given again.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="STAGE", help="Do this stage and those after it again; take those before as they are."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="STAGE", help="Leave the stages after this one for later.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of every stage without one of its own.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan with what is up to date and costs, and run nothing.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the pipelines that come with the package.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Run the stages of a pipeline, each once what it needs is there; what is up to date is not done again.

    A run that was killed or interrupted goes on where it was by the same command. A stage whose options or inputs have
    changed is done again, with those that depend on it; what they had made is set aside, not removed.
    """
    import importlib

    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.options.declare import parse_options

    # By name, not by import: the ground floor knows no trainer.
    file, places, plan, run, table = (
        importlib.import_module(f"rstar2_env.trainers.pipeline.{name}")
        for name in ("file", "places", "plan", "run", "table")
    )
    if list_:
        _list(file, places)
        return
    if pipeline is None:
        raise ConfigurationError("Which pipeline? A file, or a name that --list shows.")
    settings: dict[str, Any] = parse_options(set_ or ())
    if seed is not None:
        settings["seed"] = seed
    read = file.read_pipeline(places.find_pipeline(pipeline), settings)
    folder = output_dir or Path("runs", read.name)
    if dry_run:
        from rstar2_env.cli._tables import print_table, print_text

        shown = table.plan_table(run.PipelineRun(plan.Plan(read, folder)), begin=from_, until=until)
        print_table(table.STAGES, shown.stages, title=f"{read.name} in {folder}")
        print_table(table.COSTS, shown.costs, title="what they take")
        for line in shown.notes:
            print_text(line)
        return

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    try:
        run.run_pipeline(read, folder, begin=from_, until=until, progress=not quiet, say=say)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. The same command goes on with the run in {folder}.", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"The run is in {folder}.")


def _list(file: Any, places: Any) -> None:
    from rstar2_env.cli._tables import print_list

    print_list({name: file.read_pipeline(path).summary for name, path in places.presets().items()})
