"""``rstar2 doctor``: check that this machine is fit to train, and say what to change where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._options import Json

if TYPE_CHECKING:
    from rstar2_env.doctor.finding import Checked
    from rstar2_env.doctor.machine import Machine


def doctor_command(
    folder: Annotated[Path, typer.Option(help="Where runs are to be written, or a run.")] = Path("."),
    report: Annotated[
        Path | None, typer.Option(help="Also write a report to this file, to send in (docs/gpu-report.md).")
    ] = None,
    machine: Annotated[
        Path | None,
        typer.Option(help="Check the state of another machine, as `rstar2 doctor --json` printed it there."),
    ] = None,
    as_json: Json = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --report if it exists.")] = False,
) -> None:
    """Check drivers, builds, variables, limits, sandbox and disk, each with what to do about it.

    Nothing is changed. Exits with 1 when training would fail or be wrong: a check that ends as `problem`.
    """
    import json

    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.doctor.examine import examine
    from rstar2_env.doctor.machine import Machine
    from rstar2_env.doctor.record import record

    if report is not None and report.exists() and not overwrite:
        raise ConfigurationError(f"--report {report} exists; --overwrite replaces it.")
    state = record(folder) if machine is None else Machine.read(machine.read_text(encoding="utf-8"))
    checked = examine(state)
    if report is not None:
        _write(report, state, checked, folder)
    if as_json:
        found = {"checks": [one.record() for one in checked], "machine": state.record()}
        typer.echo(json.dumps(found, indent=1))
    else:
        _show(checked)
        if report is not None:
            typer.echo(f"The report is in {report}: fill in its open cells, and send it.")
    if any(one.level == "problem" for one in checked):
        raise typer.Exit(1)


def _write(file: Path, state: Machine, checked: list[Checked], folder: Path) -> None:
    from rstar2_env.core.run_folder import read_run
    from rstar2_env.doctor.report import report

    run = read_run(folder) if (folder / "run.json").exists() else None
    file.write_text(report(state, checked, run), encoding="utf-8")


def _show(checked: list[Checked]) -> None:
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
        typer.echo(textwrap.fill(f"Not for this machine: {', '.join(skipped)}.", width, break_on_hyphens=False))
    count = {level: sum(one.level == level for one in checked) for level in ("problem", "warning", "note", "ok")}
    typer.echo(", ".join(f"{number} {level}" for level, number in count.items()))
