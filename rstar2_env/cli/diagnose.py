"""``rstar2 diagnose``: find the problems of a run, and suggest changes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rstar2_env.cli._options import Json
from rstar2_env.cli._printing import say


def diagnose_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Runs to diagnose: the folder of a run (training, cold start, evaluation, pipeline), the "
            "file of an evaluation, or the log of another trainer (.jsonl, or TRL's trainer_state.json).",
        ),
    ],
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Compare two runs, and list the differences that may explain why their curves differ.",
        ),
    ] = False,
    step: Annotated[
        int | None,
        typer.Option(min=0, help="Ignore everything that the run recorded after this step [default: use all steps]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the problems of a run, each with its evidence, its usual cause and a suggested change.

    Each finding has a severity, the steps at which the problem was present, the measured values, up to three
    episodes that show it (open one with `rstar2 view RUN --text --episode KEY`) and options or commands to try.
    Checks for which the run lacks data are listed as not recorded. The run is not modified.
    """
    import json

    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.progress import progress

    if compare and step is not None:
        raise ConfigurationError("--step does not apply to --compare: omit one of them.")
    if len(runs) != 1 + compare:
        expected = "two runs with" if compare else "one run without"
        got = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
        raise ConfigurationError(f"Expected {expected} --compare, got {got}.")
    if compare:
        from rstar2_env.diagnosis.compare import compare_runs

        with progress("comparing", show=True):
            compared = compare_runs(*runs)
        _show(json.dumps(compared.record()) if as_json else str(compared), wrapped=not as_json)
    else:
        from rstar2_env.diagnosis.examination import diagnose

        with progress(f"diagnosing {runs[0]}", show=True):
            found = diagnose(runs[0], step=step)
        _show(json.dumps(found.record()) if as_json else str(found), wrapped=not as_json)


def _show(text: str, *, wrapped: bool) -> None:
    from rstar2_env.cli._tables import print_text

    if not wrapped:
        say(text)
        return
    for line in text.splitlines():
        if line.startswith("  "):
            print_text(line, indent="    ")
        elif line:
            print_text(line)
        else:
            say("")
