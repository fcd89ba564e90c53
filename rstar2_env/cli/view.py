"""``rstar2 view``: show runs on a local web page, in the terminal, or as one HTML file."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import Json, Overwrite
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rich.console import RenderableType

_READING = "reading episodes, MB"


def view_command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|FOLDER|FILE",
            help="Runs to show: run folders, folders that contain runs, or files of episodes [default: the "
            "folder runs if it exists, otherwise the current folder].",
        ),
    ] = None,
    text: Annotated[
        bool,
        typer.Option(
            "--text",
            help="Show the runs in this terminal, without a web server. The view is interactive on a "
            "terminal; it is printed if the output is not a terminal, or with --episodes, --filter, "
            "--sort, --episode, --no-pager or --json.",
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write the runs to this file as one HTML page that works without a server or network.",
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="With --text: number of episodes to list. With --report: number of episodes per run [default: 200].",
        ),
    ] = None,
    filter_: Annotated[
        str,
        typer.Option(
            "--filter",
            metavar="NAME=VALUE&...",
            help="List or export only episodes that meet a condition, or several joined by & ('split=train&kept=0'): "
            "split=train, step=3-9, kept=0, correct=1, status=timeout, end=answered, problem=ID, min_reward=0.5, "
            "q=WORDS (search in the text) and others (docs/viewer-reference.md).",
        ),
    ] = "",
    sort: Annotated[
        str, typer.Option(help="Sort the list of --episodes by this column; -COLUMN sorts in descending order.")
    ] = "",
    episode: Annotated[
        str | None,
        typer.Option(
            metavar="KEY|NUMBER",
            help="With --text: show only this episode, by its name in a run (train-3-17) or the number of its "
            "line in a file (12).",
        ),
    ] = None,
    pager: Annotated[
        bool,
        typer.Option(
            "--pager/--no-pager",
            help="Use the interactive view or a pager if the output is a terminal; --no-pager only prints.",
        ),
    ] = True,
    as_json: Json = False,
    overwrite: Overwrite = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free port.")] = 8800,
    host: Annotated[
        str,
        typer.Option(
            help="Network address to listen on; if other machines can reach the address, clients need a token."
        ),
    ] = "127.0.0.1",
    token: Annotated[bool, typer.Option("--token", help="Require a token also from clients on this machine.")] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Accept requests that address this machine by this additional host name."),
    ] = None,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser",
            help="Open the page in a browser. This option has no effect if a token is required, because other "
            "users could read the token in the list of processes.",
        ),
    ] = True,
) -> None:
    """Show runs: curves, episodes, groups, problems, comparisons; updated live while a run is in progress.

    Any file of episodes (.jsonl, .jsonl.gz, .json) can be shown in the terminal: `rstar2 view --text FILE` prints a
    summary, and `rstar2 view FILE --episode 12` one episode. Runs are never modified. Their content is indexed in the
    user's cache folder.
    """
    roots = list(runs) if runs else [Path("runs") if Path("runs").is_dir() else Path(".")]
    if report is not None and (text or as_json or episode is not None):
        raise typer.BadParameter(
            "--report writes a page, but --text, --json and --episode print in the terminal: omit one of them."
        )
    if report is not None and sort:
        raise typer.BadParameter(
            "--sort orders the list of --text or --json, but the tables of --report are sorted on the page itself: "
            "omit --sort."
        )
    if (filter_ or sort or episodes is not None) and not (text or as_json or episode is not None or report is not None):
        raise typer.BadParameter(
            "--filter, --episodes and --sort do not apply to the page in the browser, which has its own filters and "
            "order: omit them, or add --text or --json; --filter and --episodes also apply to --report."
        )
    if text or as_json or episode is not None:
        query = _query(filter_, sort)
        whole = episodes is None and not query and episode is None
        # A line number identifies an episode only in a file; files other than .jsonl have no index.
        if roots[0].is_file() and ((episode or "").isdecimal() or (whole and roots[0].suffix != ".jsonl")):
            _print_file(roots[0], episode, pager=pager, as_json=as_json)
        elif whole and pager and not as_json and _can_walk():
            from rstar2_env.view.terminal.walk.app import walk

            walk(roots)
        else:
            _print(roots, episodes, query, episode, pager=pager, as_json=as_json)
    elif report is not None:
        from rstar2_env.core.progress import progress
        from rstar2_env.view.export.write import write_export

        most = 200 if episodes is None else episodes
        with progress(_READING, show=True) as on_progress:
            left_out = write_export(
                roots, report, episodes=most, params=_query(filter_), on_progress=on_progress, overwrite=overwrite
            )
        say(f"Wrote {report}." + (f" It contains {left_out}" if left_out else ""), err=True)
    else:
        _serve(roots, host, port, token=token, names=allow_host or [], browser=browser)


def _serve(roots: list[Path], host: str, port: int, *, token: bool, names: list[str], browser: bool) -> None:
    from rstar2_env.core.secret import secret_of
    from rstar2_env.view.server import ViewOptions, ViewServer

    options = ViewOptions.create(host, port, token=token, names=tuple(names))
    with ViewServer(roots, options) as server:
        if not server.answers.runs()["runs"]:
            where = ", ".join(map(str, roots))
            say(f"There are no runs in {where} yet. The page shows each run as soon as the run starts.", err=True)
        say(f"Showing runs on {server.link} (Ctrl-C stops)", err=True, tells=secret_of(options.token))
        # All users of this machine can see command lines, and the browser's command line would contain the token.
        if browser and options.token is None:
            import webbrowser

            webbrowser.open(server.address)
        elif browser:
            say(
                "Open this link in a browser yourself. It is not opened automatically, because it contains the "
                "token, and other users could then read the token in the list of processes.",
                err=True,
            )
        with contextlib.suppress(KeyboardInterrupt):
            server.wait()


def _can_walk() -> bool:
    """Whether the interactive view can run in this terminal; if only the package textual is missing, print a note."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not terminal or os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return False
    try:
        import textual  # noqa: F401
    except ImportError:
        from rstar2_env.core.errors import MissingExtraError

        say(f"Note: {MissingExtraError('view', 'The interactive view')} The runs are printed instead.", err=True)
        return False
    return True


def _print(
    roots: list[Path], episodes: int | None, query: dict[str, str], key: str | None, *, pager: bool, as_json: bool
) -> None:
    from rstar2_env.core.progress import progress
    from rstar2_env.view.terminal.text_view import read_content, renderables

    with progress(_READING, show=True) as report:
        found = read_content(roots, episodes=episodes, params=query, key=key, on_progress=report)
    if as_json:
        _print_json(found)
    else:
        _print_all(renderables(found), pager=pager)


def _print_file(file: Path, number: str | None, *, pager: bool, as_json: bool) -> None:
    from rstar2_env.view.terminal.files import file_renderable, read_file

    found = read_file(file, None if number is None else int(number))
    if as_json:
        _print_json(found)
    else:
        _print_all([file_renderable(found)], pager=pager)


def _print_json(content: dict[str, Any]) -> None:
    from rstar2_env.view.plain_json import to_json

    say(to_json(content, ascii_only=True))


def _print_all(parts: list[RenderableType], *, pager: bool) -> None:
    from rich.console import Console

    from rstar2_env.view.terminal.overview import print_all

    print_all(Console(), parts, pager=pager)


def _query(text: str, sort: str = "") -> dict[str, str]:
    """Convert ``--filter`` and ``--sort`` to query parameters of the viewer's URL."""
    from rstar2_env.view.queries.filters import typed_filter

    return {**typed_filter(text, "--filter"), **({"sort": sort} if sort else {})}
