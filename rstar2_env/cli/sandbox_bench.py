"""``rstar2 sandbox bench``: how fast a sandbox is here, under what load it keeps up, and whether it leaks."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rstar2_env.sandbox.bench import Figure, LoadFigure, SoakFigure


def bench(
    provider: Annotated[str, typer.Option(help="Which sandbox.")] = "local",
    option: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the provider.")
    ] = None,
    calls: Annotated[int, typer.Option(min=8, help="Calls of the shortest program.")] = 1000,
    load: Annotated[
        list[float] | None,
        typer.Option(help="Instead: let a training step's mix arrive at this many calls a second. May be repeated."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long each load lasts.")] = 30.0,
    soak: Annotated[int, typer.Option(min=0, help="Instead: run this many calls, and see whether anything grew.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Measure a sandbox on this machine.

    CPU time covers this process and all below it. Exits with 1 when a call went wrong, or a soak left something behind.
    """
    from dataclasses import asdict

    from rstar2_env.cli._shared import progress_bar
    from rstar2_env.core.options import parse_options
    from rstar2_env.sandbox import make_sandbox
    from rstar2_env.sandbox.bench import BenchError, measure_sandbox
    from rstar2_env.sandbox.bench import load as run_load
    from rstar2_env.sandbox.bench import soak as run_soak

    found: dict[str, Any] = {
        "provider": provider,
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 2),
    }
    speed: list[Figure] = []
    loads: list[LoadFigure] = []
    soaked: SoakFigure | None = None
    try:
        with (
            make_sandbox(provider, **parse_options(option or ())) as sandbox,
            progress_bar(quiet=as_json) as progress,
        ):

            def bar(text: str) -> Any:
                task = progress.add_task(text, total=100)
                return lambda done: progress.update(task, completed=int(100 * done))

            for rate in load or ():
                loads.append(run_load(sandbox, rate, seconds, bar(f"{rate:g} calls a second")))
            if soak:
                soaked = run_soak(sandbox, soak, bar(f"{soak} calls"))
            if not load and not soak:
                speed = measure_sandbox(sandbox, provider, calls, bar(f"the {provider} sandbox"))
    except BenchError as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    if as_json:
        found |= {"figures": [asdict(figure) for figure in speed], "loads": [asdict(figure) for figure in loads]}
        typer.echo(json.dumps(found | {"soak": asdict(soaked) if soaked else None}))
    else:
        _show(found, speed, loads, soaked)
    if soaked is not None and _leaked(soaked):
        raise typer.Exit(1)


def _leaked(soaked: SoakFigure) -> bool:
    """Whether more is there than chance explains; memory may grow a little as allocators settle."""
    grew = (soaked.descriptors_grew, soaked.processes_grew, soaked.groups_grew)
    return soaked.restarted or soaked.memory_grew_mb > 32 or max(grew) > 0


def _show(found: dict[str, Any], speed: list[Figure], loads: list[LoadFigure], soaked: SoakFigure | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"Sandbox [bold]{found['provider']}[/] on {found['cores']} cores, load average {found['load_average']}. "
        "On a busy machine only CPU and ratios carry over."
    )
    if speed:
        table = Table("program", "calls", "calls/s", "CPU ms", "p50 ms", "p99 ms")
        for f in speed:
            table.add_row(
                f.program,
                str(f.calls),
                f"{f.per_second:.0f}",
                f"{f.cpu_ms:.2f}",
                f"{f.p50_ms:.2f}",
                f"{f.p99_ms:.2f}",
            )
        console.print(table)
    if loads:
        table = Table("arrivals/s", "calls", "mean ms", "p50 ms", "p99 ms", "backlog s")
        for g in loads:
            row = (g.mean_ms, g.p50_ms, g.p99_ms, g.backlog_s)
            table.add_row(f"{g.rate:g}", str(g.calls), *(f"{value:.1f}" for value in row))
        console.print(table)
    if soaked:
        state = "[red]something grew[/]" if _leaked(soaked) else "[green]nothing grew[/]"
        console.print(
            f"{soaked.calls} calls, {soaked.per_second:.0f}/s, {state}: memory {soaked.memory_grew_mb:+.1f} MiB, "
            f"descriptors {soaked.descriptors_grew:+d}, processes {soaked.processes_grew:+d}, "
            f"control groups {soaked.groups_grew:+d}, temporary files {soaked.files_grew:+d}"
        )
