"""``rstar2 sandbox``: run programs in the sandbox, and check its isolation on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._command import CliCommand, example, flag, is_typed
from rstar2_env.cli._options import IsolationOption, Json, ProviderSet, limits_of
from rstar2_env.cli._printing import say
from rstar2_env.cli.sandbox_image import image
from rstar2_env.cli.sandbox_serve import serve
from rstar2_env.cli.sandbox_serve_mcp import serve_mcp
from rstar2_env.core.text import harmless

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rstar2_env.sandbox import Outcome

app = typer.Typer(no_args_is_help=True, help="Run programs in the sandbox, and check its isolation.")
app.command(cls=CliCommand, epilog=example("rstar2 sandbox serve --port 8700 --token-file token"))(serve)
app.command(cls=CliCommand, epilog=example("rstar2 sandbox serve-mcp --timeout 5"))(serve_mcp)
app.command(cls=CliCommand, epilog=example("rstar2 sandbox image --package numpy --package scipy"))(image)

_LIMITS = {"wall_s": "timeout", "memory_mb": "memory", "processes": "processes", "output_bytes": "output"}
"""For each limit of programs, the name of the command's parameter that sets the limit."""

Provider = Annotated[str, typer.Option(help="Sandbox provider that runs the programs (local, docker, ...).")]


@app.command(cls=CliCommand, epilog=example("rstar2 sandbox run -c 'print(6 * 7)'"))
def run(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", help="Files with Python programs to run; - reads one program from standard input."
        ),
    ] = None,
    code: Annotated[
        list[str] | None,
        typer.Option("--code", "-c", metavar="CODE", help="Program to run, as text. Repeat the option to run several."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Time limit of each program, in seconds of wall-clock time.")
    ] = 5.0,
    memory: Annotated[int, typer.Option(min=1, help="Memory limit of each program, in MiB.")] = 512,
    processes: Annotated[
        int, typer.Option(min=1, help="Maximum number of processes and threads that run at the same time in a program.")
    ] = 64,
    output: Annotated[int, typer.Option(min=1, help="Maximum length of stdout, and of stderr, in bytes.")] = 1 << 20,
    provider: Provider = "local",
    set_: ProviderSet = None,
    isolation: IsolationOption = "strict",
    stdin: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File that a program reads as its standard input.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the random numbers of `random` and `numpy.random` in the programs.")
    ] = 0,
    session: Annotated[
        str | None,
        typer.Option(
            help="Run the programs in order as the cells of one notebook, so that later programs see the "
            "variables of earlier ones; the value is the name of the session."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result of each program as one line of JSON.")
    ] = False,
) -> None:
    """Run each program in its own sandbox, or all as cells of one session, and show the results.

    Exits with 0 if every program succeeds, with 1 if a program fails, and with 2 if the sandbox cannot start.
    """
    from rstar2_env.sandbox import Job, make_sandbox

    limits = limits_of(ctx, **_LIMITS)
    text = stdin.read_text(encoding="utf-8", errors="surrogateescape") if stdin is not None else ""
    # Programs given with -c run after the files, and are identified by a number.
    programs = [(str(file), _source(file)) for file in files or ()]
    programs += [(f"-c {number}", typed) for number, typed in enumerate(code or (), 1)]
    if not programs:
        raise typer.BadParameter("No program is given: give a FILE, - for standard input, or -c CODE.")
    if stdin is not None and any(name == "-" for name, _ in programs):
        raise typer.BadParameter(
            "The program is read from standard input (-), so --stdin FILE cannot also provide it: give "
            "the program as a file or with -c CODE."
        )
    jobs = [Job(program, stdin=text, limits=limits, seed=seed, session=session) for _, program in programs]
    options = _provider_options(ctx, set_, {"isolation": ("isolation",), "limits": tuple(_LIMITS.values())})
    with make_sandbox(provider, **{"isolation": isolation, "limits": limits, **options}) as sandbox:
        outcomes = sandbox.run_many(jobs)
    several = len(programs) > 1
    for (name, _), outcome in zip(programs, outcomes, strict=True):
        if as_json:
            say(json.dumps({**({"file": name} if several else {}), **asdict(outcome)}))
        else:
            _show(name, outcome, several=several)
    if any(outcome.status.is_error or not outcome.status.counts for outcome in outcomes):
        raise typer.Exit(1)


@app.command(cls=CliCommand, epilog=example("rstar2 sandbox check --isolation strict"))
def check(
    ctx: typer.Context,
    provider: Provider = "local",
    set_: ProviderSet = None,
    isolation: IsolationOption = "best",
    as_json: Json = False,
) -> None:
    """Show each layer of isolation on this machine, and try to break out of the sandbox.

    For a remote sandbox, run this command on its servers to test the isolation there. Exits with 1 if a layer that
    strict isolation requires is missing or was broken.
    """
    import warnings

    from rstar2_env.sandbox import make_sandbox
    from rstar2_env.sandbox.check import try_to_escape

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the table below shows missing layers
        options = _provider_options(ctx, set_, {"isolation": ("isolation",)})
        sandbox = make_sandbox(provider, **{"isolation": isolation, **options})
    with sandbox:
        layers = sandbox.capabilities()
        # The attempted escapes aim at targets on this machine, which a remote sandbox cannot reach anyway.
        trials = {trial.layer: trial for trial in try_to_escape(sandbox)} if provider != "remote" else {}
    rows = []
    for layer in layers:
        trial = trials.get(layer.name)
        rows.append(
            {
                **asdict(layer),
                "tested": None if trial is None else "held" if trial.held else "BROKEN",
                "seen": None if trial is None else trial.detail,
            }
        )
    if as_json:
        say(json.dumps({"provider": provider, "isolation": isolation, "layers": rows}))
    else:
        _show_layers(provider, rows)
    if any((row["required"] and not row["active"]) or row["tested"] == "BROKEN" for row in rows):
        raise typer.Exit(1)


def _provider_options(
    ctx: typer.Context, settings: list[str] | None, flags: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Parse the values of ``--set``, and refuse an option that a flag also sets.

    Args:
        ctx: The command that was called.
        settings: The values of ``--set``.
        flags: For each option, the names in Python of the flags that also set it.

    Raises:
        ConfigurationError: A flag and ``--set`` give the same option.
    """
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.options.declare import parse_options

    options = parse_options(settings or (), flag="--set ")
    for option in options.keys() & flags.keys():
        for name in flags[option]:
            if is_typed(ctx, name):
                raise ConfigurationError(
                    f"{flag(ctx, name)} and --set {option} both set this option: omit one of them."
                )
    return options


def _source(file: Path) -> str:
    data = typer.get_binary_stream("stdin").read() if str(file) == "-" else file.read_bytes()
    return data.decode("utf-8", "surrogateescape")


def _show(name: str, outcome: Outcome, *, several: bool) -> None:
    if several:
        say(f"== {name}", style={"bold": True})
    say(outcome.stdout, nl=False)
    if outcome.value is not None:
        say(outcome.value)
    say(outcome.stderr, nl=False, err=True)
    if outcome.traceback:
        say(outcome.traceback, nl=False, err=True)
    elif outcome.error_message:
        say(outcome.error_message, err=True)
    if outcome.session_note:
        say(outcome.session_note, err=True)
    colour = typer.colors.RED if outcome.status.is_error else typer.colors.GREEN
    ending = f"signal {outcome.signal}" if outcome.signal else f"exit {outcome.exit_code}"
    if outcome.session is not None:
        ending = f"session {outcome.session}" + (f", {ending}" if outcome.session == "ended" else "")
    figures = f"{outcome.wall_s:.3f} s wall, {outcome.cpu_s:.3f} s CPU, {outcome.peak_memory_mb:.0f} MiB"
    say(f"[{outcome.status.value}] {ending}, {figures}", style={"fg": colour}, err=True)


def _show_layers(provider: str, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"Isolation of the sandbox {provider!r} on this machine")
    for column in ("layer", "active", "mechanism, or reason", "escape test"):
        table.add_column(column, overflow="fold")
    for row in rows:
        state = "[green]yes[/]" if row["active"] else "[red]NO[/]" if row["required"] else "[dim]no[/]"
        if row["tested"] is None:
            tested = ""
        elif row["tested"] == "held":
            tested = "[green]blocked[/]"
        else:
            tested = f"[bold red]BROKEN[/]: {escape(harmless(row['seen']))}"
        name = escape(harmless(row["name"]))
        table.add_row(f"[bold]{name}[/]" if row["required"] else name, state, escape(harmless(row["detail"])), tested)
    Console().print(table)
    say("Strict isolation requires the layers in bold, which are guarantees;\nthe other layers may be missing.")
    say("--json includes the observations of each escape test.")
