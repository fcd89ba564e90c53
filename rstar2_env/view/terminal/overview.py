"""Shows an overview of runs in a terminal: progress, figures as small curves, statuses of calls, ends of episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from rstar2_env.view.terminal.columns import TableColumn, printable_table
from rstar2_env.view.terminal.sanitize import one_line, safe_text
from rstar2_env.view.terminal.sparkline import sparkline

_FIGURES = (
    "eval/pass_rate",
    "eval/reward",
    "eval/tool_error_share",
    "rollout/pass_rate",
    "rollout/reward",
    "rollout/tool_error_share",
    "rollout/tool_error_share_correct",
    "kept/tool_error_share_correct",
    "rollout/tokens",
    "rollout/turns",
    "rollout/groups_rejected",
    "tokens/share_trained",
    "loss",
    "grad_norm",
    "kl",
    "policy/entropy",
    "seconds/rollout",
    "seconds/tool",
    "seconds/hand_over",
    "seconds/train",
)
_EVENTS = 8
_CURVE = 40
_HEALTH_CURVE = 16
_HEALTH_STYLES = {"ok": "green", "watch": "yellow", "problem": "bold red", "unknown": "dim"}
_NARROW = 110
"""Width of the terminal below which the minimum and maximum of a figure are not shown, to leave space for the curve."""


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
    TableColumn("pass rate", lambda row: safe_text(number((row["figures"] or {}).get("pass_rate"))), number=True),
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
    parts += [safe_text(sentence) for sentence in run["verdict"]]
    if metrics["series"]:
        parts.append(_Fitted(partial(_curves, metrics)))
    if run["health"]:
        parts.append(_health(run["health"]))
    parts += [safe_text(one_line(sentence["text"], 1000)) for sentence in run["sentences"]]
    for split, figures in run["episode_figures"].items():
        if figures:
            title = "training episodes" if split == "train" else "held-out episodes of the last evaluation"
            parts.append(_figures(title, figures))
    if run["stages"]:
        parts.append(_stages(run["stages"]))
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
        last = f"{100 * sign['last']:.1f}%" if sign["percent"] else number(sign["last"])
        table.add_row(
            safe_text(sign["label"]),
            safe_text(last),
            sparkline(sign["values"], _HEALTH_CURVE),
            Text(sign["state"], _HEALTH_STYLES[sign["state"]]),
            safe_text(one_line(" ".join(sign["says"]), 400)),
        )
    return table


def _curves(metrics: Mapping[str, Any], width: int) -> RenderableType:
    series = metrics["series"]
    names = [name for name in _FIGURES if name in series] or sorted(series)[:20]
    headings = ("first", "last") if width < _NARROW else ("first", "last", "min", "max")
    longest = max(map(len, names))
    room = min(_CURVE, max(10, width - min(longest, 40) - 12 * len(headings) - 8))
    table = Table(title="figures by step", title_justify="left")
    table.add_column("figure", overflow="fold", min_width=min(longest, 34))
    for heading in headings:
        table.add_column(heading, justify="right")
    table.add_column(f"steps {metrics['steps'][0]} to {metrics['steps'][-1]}", min_width=room)
    for name in names:
        known = [value for value in series[name] if value is not None]
        if known:
            ends = (known[0], known[-1], min(known), max(known))
            table.add_row(
                safe_text(name), *map(number, ends[: len(headings)]), sparkline(series[name], room, metrics["steps"])
            )
    return table


def _figures(title: str, figures: Mapping[str, Any]) -> RenderableType:
    table = Table(title=title, show_header=False, title_justify="left")
    names = ("episodes", "problems", "success", "reward", "tool_error_share", "tool_error_share_correct", "tokens")
    for name in (*names, "turns"):
        table.add_row(name.replace("_", " "), number(figures[name]))
    for name in ("ends", "statuses", "injected"):
        if figures[name]:
            table.add_row(name, safe_text(", ".join(f"{key} {count:,}" for key, count in figures[name].items())))
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
    table = Table(title=f"the last of {len(events):,} events", title_justify="left")
    for heading in ("time", "step", "event", "details"):
        table.add_column(heading, overflow="fold")
    for event in events[-_EVENTS:]:
        table.add_row(
            safe_text(one_line(event.get("time", ""), 40)),
            safe_text(one_line(event.get("step", ""), 20)),
            safe_text(one_line(event.get("event", ""), 40)),
            safe_text(one_line(event["details"], 2000)),
        )
    return table


def number(value: float | None) -> str:
    """Format a figure for tables."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


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
