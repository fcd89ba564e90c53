"""Shows an overview of runs in a terminal: progress, metrics as small curves, statuses of calls, ends of episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from rstar2_env.view.terminal.columns import TableColumn, printable_table
from rstar2_env.view.terminal.sanitize import one_line, safe_text
from rstar2_env.view.terminal.sparkline import sparkline
from rstar2_env.view.words import cards, metrics_of, words

_EVENTS = 8
_SHARES = frozenset({"success", "tool_error_share", "tool_error_share_correct"})
_CURVE = 40
_HEALTH_CURVE = 16
_HEALTH_STYLES = {"ok": "green", "watch": "yellow", "problem": "bold red", "unknown": "dim"}
_NARROW = 110
"""Width of the terminal below which the minimum and maximum of a metric are not shown, to leave space for the curve."""


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A renderable that is built for the width of the terminal."""

    make: Callable[[int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.make(options.max_width)


def run_list(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Build a table of runs, for printing.

    Args:
        rows: Rows from ``Answers.runs``.
    """
    return printable_table(COLUMNS, rows)


def _steps(row: Mapping[str, Any]) -> str:
    return f"{row['steps']}/{row['planned_steps']}" if row["planned_steps"] else str(row["steps"])


COLUMNS = (
    TableColumn("run", lambda row: safe_text(one_line(row["run"])), least=10),
    TableColumn("kind", lambda row: safe_text(one_line(row["kind"], 40)), least=6),
    TableColumn("recipe", lambda row: safe_text(one_line(row["recipe"], 60)), least=6),
    TableColumn("state", lambda row: Text(row["state"], _style(row["state"])), least=7),
    TableColumn("steps", lambda row: safe_text(_steps(row)), number=True),
    TableColumn("episodes", lambda row: safe_text(f"{sum(row['episodes'].values()):,}"), number=True),
    TableColumn("success", lambda row: safe_text(percent((row["figures"] or {}).get("pass_rate"))), number=True),
    TableColumn("updated", lambda row: safe_text(one_line(row["updated"] or "")[:16].replace("T", " "))),
)
"""Columns of the table of runs; the rows come from ``Answers.runs``."""


def run_overview(run: Mapping[str, Any], metrics: Mapping[str, Any]) -> Group:
    """Build the overview of one run, for printing.

    Args:
        run: Result of ``Answers.run``.
        metrics: Result of ``Answers.metrics``.
    """
    parts: list[RenderableType] = [_head(run)]
    parts += [safe_text(f"Note: {note}", "yellow") for note in run["notes"]]
    if run["stages"]:
        parts.append(_stages(run["stages"]))
    parts += [safe_text(sentence) for sentence in run["verdict"]]
    if run["health"]:
        parts.append(_health(run["health"]))
    parts += [safe_text(one_line(sentence["text"], 1000)) for sentence in run["sentences"]]
    for split, title in words()["splits"].items():
        figures = run["episode_figures"][split]
        if figures and figures["episodes"]:
            parts.append(_figures("" if run["kind"] == "evaluation" else title, figures))
    if metrics["series"]:
        parts.append(_Fitted(partial(_curves, metrics)))
    if run["events"]:
        parts.append(_events(run["events"]))
    return Group(*parts)


def _head(run: Mapping[str, Any]) -> RenderableType:
    planned = f" of {run['planned_steps']}" if run["planned_steps"] else ""
    line = Text.assemble(
        (one_line(run["name"]), "bold"),
        f"  {one_line(run['kind'])}  {one_line(run['recipe'])}  ",
        (run["state"], _style(run["state"])),
        f"  step {run['steps']}{planned}  {run['episodes']['train']:,} training episodes, "
        f"{run['episodes']['eval']:,} held out",
    )
    return Group(line, safe_text(run["error"], "red")) if run["error"] else line


def _health(signs: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = Table(title="health", title_justify="left")
    for heading in ("figure", "last", "curve", "state", ""):
        table.add_column(heading, justify="right" if heading == "last" else "left", overflow="fold")
    for sign in signs:
        last = (percent if sign["percent"] else number)(sign["last"])
        table.add_row(
            safe_text(sign["label"]),
            safe_text(last),
            sparkline(sign["values"], _HEALTH_CURVE),
            Text(words()["health"][sign["state"]], _HEALTH_STYLES[sign["state"]]),
            safe_text(one_line(" ".join(sign["says"]), 400)),
        )
    return table


def _curves(metrics: Mapping[str, Any], width: int) -> RenderableType:
    lines = list(_lines(metrics["series"]))
    headings = ("first", "last") if width < _NARROW else ("first", "last", "min", "max")
    longest = max((len(label) for label, *_ in lines), default=0)
    room = min(_CURVE, max(10, width - min(longest, 40) - 12 * len(headings) - 8))
    table = Table(title="figures by step", title_justify="left")
    table.add_column("figure", overflow="fold", min_width=min(longest, 34))
    for heading in headings:
        table.add_column(heading, justify="right")
    table.add_column(f"steps {metrics['steps'][0]} to {metrics['steps'][-1]}", min_width=room)
    section = ""
    for label, values, form, within in lines:
        if within != section:
            section = within
            table.add_row(safe_text(section, "bold"))
        known = [value for value in values if value is not None]
        ends = (known[0], known[-1], min(known), max(known))
        shown = [_FORMS[form](value) for value in ends[: len(headings)]]
        table.add_row(safe_text(label), *shown, sparkline(values, room, metrics["steps"]))
    return table


def _lines(series: Mapping[str, Sequence[float | None]]) -> Iterator[tuple[str, Sequence[float | None], str, str]]:
    """Yield each curve once, in the order of the viewer's page: label, values, number format and section.

    If a run has no metric that the page draws, all metrics of the run are yielded.
    """
    names = {name for name, values in series.items() if any(value is not None for value in values)}
    drawn: dict[str, list[Sequence[float | None]]] = {}
    for card in cards():
        found = metrics_of(card, names)
        drawn[card["title"]] = [series[name] for name, _ in found]
        # Reward and success are one curve if a correct answer is the whole reward.
        if all(values in drawn.get(card.get("repeats", ""), ()) for values in drawn[card["title"]]):
            continue
        for name, label in found:
            full = (
                card["title"]
                if len(card["metrics"]) == 1 and name == card["metrics"][0][0]
                else f"{card['title']}: {label}"
            )
            yield full, series[name], card["form"], card["section"]
    if not any(drawn.values()):
        yield from ((name, series[name], "number", "") for name in sorted(names))


def _figures(title: str, figures: Mapping[str, Any]) -> RenderableType:
    table = Table(title=title, show_header=False, title_justify="left")
    for name, label in words()["figures"].items():
        value = figures.get(name)
        if isinstance(value, Mapping):
            told = ", ".join(f"{key} {count:,}" for key, count in value.items())
        else:
            told = figure(name, value) if name in figures else ""
        if told:
            table.add_row(label, safe_text(told))
    return table


def _stages(stages: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = Table(title="stages", title_justify="left")
    for heading in ("stage", "kind", "state", "run"):
        table.add_column(heading, overflow="fold")
    for stage in stages:
        state = str(stage["state"])
        table.add_row(
            safe_text(stage["name"]),
            safe_text(stage["kind"]),
            safe_text(state, _style(state)),
            safe_text(stage["run"] or ""),
        )
    return table


def _events(events: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = Table(title=f"the newest of {len(events):,} events", title_justify="left")
    for heading in ("time", "step", "event", "details"):
        table.add_column(heading, overflow="fold")
    for event in reversed(events[-_EVENTS:]):
        table.add_row(
            safe_text(one_line(event.get("time", ""), 40)),
            safe_text(one_line(event.get("step", ""), 20)),
            safe_text(one_line(event.get("event", ""), 40)),
            safe_text(one_line(event["details"], 2000)),
        )
    return table


def figure(name: str, value: float | None) -> str:
    """Format a metric of episodes: with ``percent`` if the metric ``name`` is a share, otherwise with ``number``."""
    return (percent if name in _SHARES else number)(value)


def percent(value: float | None) -> str:
    """Format a share (0 to 1) for tables: ``45.0%``; ``None`` as a dash."""
    return "–" if value is None else f"{100 * value:.1f}%"


def number(value: float | None) -> str:
    """Format a number for tables: integers with commas, others with four significant digits, ``None`` as a dash."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


_FORMS: Mapping[str, Callable[[float | None], str]] = {
    "percent": percent,
    "number": number,
    "seconds": lambda value: f"{number(value)} s",
}


def _style(state: str) -> str:
    return {"running": "cyan", "finished": "green", "failed": "red"}.get(state, "yellow")


def print_all(console: Console, parts: Sequence[RenderableType], *, pager: bool) -> None:
    """Print several outputs; on a terminal, use a pager if ``pager`` is set.

    Args:
        console: Output console.
        parts: Objects to print, which rich can render.
        pager: Whether a pager may be used.
    """
    import os

    if pager and console.is_terminal:
        os.environ.setdefault("LESS", "-RFX")
        with console.pager(styles=True):
            console.print(*parts, sep="\n")
    else:
        console.print(*parts, sep="\n")
