"""``rstar2 doctor``: check that this machine is ready for training, and suggest fixes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import Json, Overwrite
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rstar2_env.doctor.results import DoctorResult


def doctor_command(
    folder: Annotated[
        Path,
        typer.Option(
            help="Folder of your runs, whose disk is checked; or the folder of one run, whose metrics are then also "
            "added to --report."
        ),
    ] = Path("."),
    report: Annotated[
        Path | None,
        typer.Option(help="File to write a report to, which you can submit as an issue (docs/gpu-report.md)."),
    ] = None,
    machine: Annotated[
        Path | None,
        typer.Option(
            help="Check another machine instead of this one: give the file that holds the output of `rstar2 "
            "doctor --json` on that machine."
        ),
    ] = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Also test this machine with computations: GPU kernels, an inference engine, a training step "
            "that is divided among devices, the sandbox and the trainer GRPO-RoC. The measurements are "
            "written to --report [default: gpu-report.md in --folder].",
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=3, help="Time limit of all tests of --prove together, in seconds.")
    ] = 1200.0,
    model: Annotated[
        Path | None,
        typer.Option(help="Folder of the model that --prove uses [default: a small model with random weights]."),
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="Test of --prove to run, such as kernels; all others are left out. Repeat the option to run "
            "several [default: run all tests]."
        ),
    ] = None,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Check drivers, the build of torch, environment variables, limits, sandbox, disk; suggest a fix for each problem.

    Nothing is changed. Exits with 1 if a check has the result `problem`: training would fail or give wrong results.
    With `--prove`, the machine is also tested by computations, without a network; each test is ended at its time limit,
    even if it hangs, and tests whose packages are not installed are skipped.
    """
    import json
    from dataclasses import asdict

    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.files.outputs import check_file, replacing
    from rstar2_env.doctor.examine import examine
    from rstar2_env.doctor.machine import MachineState
    from rstar2_env.doctor.record import record

    if machine is not None and prove:
        raise ConfigurationError(
            "--prove runs computations on this machine, and --machine checks another one: omit one of them."
        )
    if prove and report is None:
        report = folder / "gpu-report.md"
    if report is not None:
        check_file(report, option="report", overwrite=overwrite, inputs=machine)
    if machine is None:
        state = record(folder)
    else:
        state = MachineState.read(machine.read_text(encoding="utf-8", errors="replace"), name=str(machine))
    checked = examine(state)
    proof = _prove(timeout, model, part or (), quiet=as_json) if prove else []
    if report is not None:
        from rstar2_env.core.run_folder import read_run
        from rstar2_env.doctor.report import report as report_text

        run = read_run(folder) if (folder / "run.json").exists() else None
        with replacing(report) as partial:
            partial.write_text(report_text(state, checked, run, _rows(proof)), encoding="utf-8")
    if as_json:
        found = {"checks": list(map(asdict, checked)), "machine": asdict(state)}
        say(json.dumps(found | ({"proof": [one.record() for one in proof]} if prove else {}), indent=1))
    else:
        _show(checked)
        if prove:
            _show_proof(proof)
        if report is not None:
            say(f"Report written to {report}. Fill in its empty cells before you submit it as an issue.")
    if any(result.level == "problem" for result in [*checked, *proof]):
        raise typer.Exit(1)


def _prove(timeout_s: float, model: Path | None, parts: Sequence[str], *, quiet: bool) -> list[Any]:
    from rstar2_env.cli._trainers import import_trainers

    def report(line: str) -> None:
        if not quiet:
            say(line, err=True)

    found: list[Any] = import_trainers("prove.run").prove(
        timeout_s=timeout_s, model=None if model is None else str(model), parts=parts, say=report
    )
    return found


def _rows(proof: Sequence[Any]) -> list[tuple[str, ...]]:
    """Return the table rows of the tests of ``--prove``: a row for each test, then a row for each measurement."""
    rows: list[tuple[str, ...]] = []
    for one in proof:
        head, seconds = (one.part, one.level), f"{one.seconds:.0f}"
        rows.append((*head, one.note, "", "", seconds))
        rows += [(one.part, "", figure.name, f"{figure.value:.4g}", figure.expected, "") for figure in one.figures]
    return rows


def _show_proof(proof: Sequence[Any]) -> None:
    for one in proof:
        say(f"{one.level:<9}{one.part}: {one.note} ({one.seconds:.0f} s)")
        for figure in one.figures:
            unexpected = "" if figure.inside else "  <- not expected"
            say(f"{'':9}{figure.name}: {figure.value:.4g}; expected: {figure.expected or 'unknown'}{unexpected}")


def _show(checked: list[DoctorResult]) -> None:
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size().columns)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=" " * 12, break_on_hyphens=False, break_long_words=False)
    for result in checked:
        if result.level != "skipped":
            say(wrapper.fill(f"{result.level:<9}{result.name}: {result.line}"))
            if result.fix:
                say(wrapper.fill(f"{'':9}-> {result.fix}"))
    skipped = [result.name for result in checked if result.level == "skipped"]
    if skipped:
        wrapper.subsequent_indent = ""
        say(wrapper.fill(f"These checks do not apply to this machine: {', '.join(skipped)}."))
    say(_counts([result.level for result in checked]))


def _counts(levels: list[str]) -> str:
    """Return the number of checks of each level, such as ``0 problems, 1 warning, 2 notes, 9 ok``."""
    numbers = {name: levels.count(name) for name in ("problem", "warning", "note")}
    counted = [f"{number} {name}{'s' * (number != 1)}" for name, number in numbers.items()]
    return ", ".join([*counted, f"{levels.count('ok')} ok"])
