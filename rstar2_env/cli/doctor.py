"""``rstar2 doctor``: check that this machine is ready for training, and suggest fixes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._options import Json

if TYPE_CHECKING:
    from rstar2_env.doctor.machine import MachineState
    from rstar2_env.doctor.results import DoctorResult


def doctor_command(
    folder: Annotated[Path, typer.Option(help="Folder for runs, or the folder of a run.")] = Path("."),
    report: Annotated[
        Path | None, typer.Option(help="Also write a report to submit, to this file (docs/gpu-report.md).")
    ] = None,
    machine: Annotated[
        Path | None,
        typer.Option(help="Check another machine, from the output of `rstar2 doctor --json` there."),
    ] = None,
    as_json: Json = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --report if it exists.")] = False,
) -> None:
    """Check drivers, builds, variables, limits, sandbox and disk, and suggest a fix for each problem.

    Nothing is changed. Exits with 1 if a check ends as `problem`: training would fail or give wrong results.
    """
    import json

    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.doctor.examine import examine
    from rstar2_env.doctor.machine import MachineState
    from rstar2_env.doctor.record import record

    if report is not None and report.exists() and not overwrite:
        raise ConfigurationError(f"--report {report} exists; use --overwrite to replace it.")
    state = record(folder) if machine is None else MachineState.read(machine.read_text(encoding="utf-8"))
    checked = examine(state)
    if report is not None:
        _write(report, state, checked, folder)
    if as_json:
        found = {"checks": [one.record() for one in checked], "machine": state.record()}
        typer.echo(json.dumps(found, indent=1))
    else:
        _show(checked)
        if report is not None:
            typer.echo(f"Report written to {report}: fill in its empty cells, then submit it.")
    if any(one.level == "problem" for one in checked):
        raise typer.Exit(1)


def _write(file: Path, state: MachineState, checked: list[DoctorResult], folder: Path) -> None:
    from rstar2_env.core.run_folder import read_run
    from rstar2_env.doctor.report import report

    run = read_run(folder) if (folder / "run.json").exists() else None
    file.write_text(report(state, checked, run), encoding="utf-8")


def _show(checked: list[DoctorResult]) -> None:
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size().columns)
    for one in checked:
        if one.level == "skipped":
            continue
        head = f"{one.level:<9}{one.name}: "
        for begin, text in ((head, one.line), (f"{'':9}-> ", one.fix)):
            if text:
                typer.echo(
                    textwrap.fill(
                        text,
                        width,
                        initial_indent=begin,
                        subsequent_indent=" " * 12,
                        break_on_hyphens=False,
                        break_long_words=False,
                    )
                )
    skipped = [one.name for one in checked if one.level == "skipped"]
    if skipped:
        typer.echo(
            textwrap.fill(f"Not applicable to this machine: {', '.join(skipped)}.", width, break_on_hyphens=False)
        )
    count = {level: sum(one.level == level for one in checked) for level in ("problem", "warning", "note", "ok")}
    typer.echo(", ".join(f"{number} {level}" for level, number in count.items()))
