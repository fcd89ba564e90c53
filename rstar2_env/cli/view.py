"""``rstar2 view``: runs on a local web page, in the terminal, or as one file."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

_READING = "reading episodes, MB"


def view_command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN|FOLDER]...",
            help="Folders of runs, or with runs below them, or .jsonl files of evaluations [default: runs, else .].",
        ),
    ] = None,
    text: Annotated[
        bool,
        typer.Option(
            "--text",
            help="Show it in this terminal, without a server: walk through it by keys; where stdout is no terminal, or "
            "one of --episodes, --filter, --sort, --episode or --no-pager is given, print it.",
        ),
    ] = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write one page that needs no server and no network.")
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=0, help="With --text: list so many episodes; with --export: how many of each run it holds [200]."
        ),
    ] = None,
    filter_: Annotated[
        str,
        typer.Option(
            "--filter",
            metavar="NAME=VALUE&...",
            help="Of those episodes: split, step=3-9, kept=0, correct=1, status=timeout, end=, problem=, min_reward=, "
            "q=words, … (docs/viewer.md).",
        ),
    ] = "",
    sort: Annotated[str, typer.Option(help="Order of --episodes: a column, after a - the largest first.")] = "",
    episode: Annotated[
        str | None, typer.Option(metavar="KEY", help="With --text: show this episode, such as train-3-17.")
    ] = None,
    pager: Annotated[bool, typer.Option("--pager/--no-pager", help="In a terminal, walk or page through text.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8800,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that other machines reach asks for a token.")
    ] = "127.0.0.1",
    token: Annotated[bool, typer.Option("--token", help="Ask for a token on this machine too.")] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name that browsers call this machine by.")
    ] = None,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser",
            help="Open the page in a browser; never with a token, since other users could read it off the browser's "
            "command line.",
        ),
    ] = True,
) -> None:
    """Show runs: curves, episodes, groups, problems, comparisons; live while they are written.

    Runs are only read. What was read of them is kept in an index in the user's cache folder.
    """
    roots = list(runs) if runs else [Path("runs") if Path("runs").is_dir() else Path(".")]
    if text or episode is not None:
        asked = _asked(filter_, sort)
        if pager and episodes is None and not asked and episode is None and _can_walk():
            from rstar2_env.view.terminal.walk.app import walk

            walk(roots)
        else:
            _print(roots, episodes, asked, episode, pager=pager)
    elif export is not None:
        from rstar2_env.cli._progress import progress
        from rstar2_env.view.export import write_export

        most = 200 if episodes is None else episodes
        with progress(_READING) as report:
            left_out = write_export(roots, export, episodes=most, asked=_asked(filter_), told=report)
        typer.echo(f"Wrote {export}." + (f" It holds {left_out}" if left_out else ""), err=True)
    else:
        _serve(roots, host, port, token=token, names=allow_host or [], browser=browser)


def _serve(roots: list[Path], host: str, port: int, *, token: bool, names: list[str], browser: bool) -> None:
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.view.export.write import no_runs
    from rstar2_env.view.server import ViewOptions, ViewServer

    options = ViewOptions.of(host, port, token=token, names=tuple(names))
    with ViewServer(roots, options) as server:
        if not server.answers.runs()["runs"]:
            raise ConfigurationError(no_runs(roots))
        typer.echo(f"Showing runs on {server.link} (Ctrl-C ends it)", err=True)
        # Every user of this machine can read the command lines of others, and the browser's would hold the token.
        if browser and options.token is None:
            import webbrowser

            webbrowser.open(server.address)
        elif browser:
            typer.echo("Open this link yourself: on a browser's command line others could read its token.", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.wait()


def _can_walk() -> bool:
    """Whether this is a terminal that moves its cursor, and textual is there; if only that is missing, says so."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not terminal or os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return False
    try:
        import textual  # noqa: F401
    except ImportError:
        from rstar2_env.core.errors import MissingExtraError

        typer.echo(f"Note: {MissingExtraError('view', 'Walking through runs by keys')} They are printed.", err=True)
        return False
    return True


def _print(roots: list[Path], episodes: int | None, asked: dict[str, str], key: str | None, *, pager: bool) -> None:
    from rich.console import Console

    from rstar2_env.cli._progress import progress
    from rstar2_env.view.terminal.overview import print_all
    from rstar2_env.view.terminal.text_view import text_view

    with progress(_READING) as report:
        found = text_view(roots, episodes=episodes, asked=asked, key=key, told=report)
    print_all(Console(), found, pager=pager)


def _asked(text: str, sort: str = "") -> dict[str, str]:
    """A filter as it stands in an address, from the command line."""
    from rstar2_env.view.queries.filters import typed_filter

    return {**typed_filter(text, "--filter"), **({"sort": sort} if sort else {})}
