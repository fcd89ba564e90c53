"""``rstar2 doctor``: check that this machine is ready for training, and suggest fixes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._options import Json, Overwrite

if TYPE_CHECKING:
    from rstar2_env.doctor.results import DoctorResult


def doctor_command(
    folder: Annotated[
        Path,
        typer.Option(help="Folder for runs, to check its disk; or a run folder, to add its metrics to --report."),
    ] = Path("."),
    report: Annotated[
        Path | None,
        typer.Option(help="File for a report to submit as an issue (docs/gpu-report.md)."),
    ] = None,
    machine: Annotated[
        Path | None,
        typer.Option(
            help="Check another machine, from a file with the output that `rstar2 doctor --json` printed there."
        ),
    ] = None,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Check drivers, builds, variables, limits, sandbox and disk, and suggest a fix for each problem.

    Nothing is changed. Exits with 1 if a check ends as `problem`: training would fail or give wrong results.
    """
    import json
    from dataclasses import asdict

    from rstar2_env.core.files.outputs import check_file, replacing
    from rstar2_env.doctor.examine import examine
    from rstar2_env.doctor.machine import MachineState
    from rstar2_env.doctor.record import record

    if report is not None:
        check_file(report, option="report", overwrite=overwrite, inputs=machine)
    state = (
        record(folder) if machine is None else MachineState.read(machine.read_text(encoding="utf-8", errors="replace"))
    )
    checked = examine(state)
    if report is not None:
        from rstar2_env.core.run_folder import read_run
        from rstar2_env.doctor.report import report as report_text

        run = read_run(folder) if (folder / "run.json").exists() else None
        with replacing(report) as partial:
            partial.write_text(report_text(state, checked, run), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({"checks": list(map(asdict, checked)), "machine": asdict(state)}, indent=1))
    else:
        _show(checked)
        if report is not None:
            typer.echo(f"Report written to {report}: fill in its empty cells, then submit it.")
    if any(result.level == "problem" for result in checked):
        raise typer.Exit(1)


def _show(checked: list[DoctorResult]) -> None:
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size().columns)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=" " * 12, break_on_hyphens=False, break_long_words=False)
    for result in checked:
        if result.level != "skipped":
            typer.echo(wrapper.fill(f"{result.level:<9}{result.name}: {result.line}"))
            if result.fix:
                typer.echo(wrapper.fill(f"{'':9}-> {result.fix}"))
    skipped = [result.name for result in checked if result.level == "skipped"]
    if skipped:
        wrapper.subsequent_indent = ""
        typer.echo(wrapper.fill(f"Not applicable to this machine: {', '.join(skipped)}."))
    count = {level: sum(result.level == level for result in checked) for level in ("problem", "warning", "note", "ok")}
    typer.echo(", ".join(f"{number} {level}" for level, number in count.items()))
