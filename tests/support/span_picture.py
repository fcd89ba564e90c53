"""Draws docs/pictures/step-spans.svg, the spans of one training step: ``python tests/support/span_picture.py``.

The step is recorded in a run of a tiny model on the CPU: environment, sandbox, collector, loss and optimizer are the
real ones, and a script writes the turns, since a model of random weights never calls a tool.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from places import DOCS

OUT = DOCS / "pictures" / "step-spans.svg"
STEP = 2

_COLOURS = {"chat": "#5b8def", "execute_tool": "#2f9e6e", "invoke_agent": "#dfe5f1"}
_PHASE, _FAILED = "#8a93a6", "#d64545"
_LEFT, _WIDTH, _ROW, _TOP = 190, 900, 20, 56
_PHASES = ("step", "hand_over", "collect", "rollout", "reward", "select", "advantage", "update", "optimizer")


@dataclass(frozen=True)
class Bar:
    """A span of the picture.

    Attributes:
        kind: ``chat``, ``execute_tool``, ``invoke_agent`` or a phase.
        lane: Number of its row.
        start: Its start in seconds.
        stop: Its end in seconds.
        failed: Whether it has an ``error.type``.
        title: Text that a pointer shows.
    """

    kind: str
    lane: int
    start: float
    stop: float
    failed: bool
    title: str


def bars_of(spans: Sequence[Any], step: int = STEP) -> tuple[list[str], list[Bar]]:
    """Return the labels of the rows, and the bars, of the trace of a step."""
    root = next(
        one for one in spans if one.name == "rstar2.train.step" and (one.attributes or {})["rstar2.train.step"] == step
    )
    own = sorted(
        (one for one in spans if one.context.trace_id == root.context.trace_id), key=lambda one: one.start_time
    )
    labels: list[str] = []
    lanes: dict[Any, int] = {}

    def lane(key: Any, label: str) -> int:
        if key not in lanes:
            lanes[key] = len(labels)
            labels.append(label)
        return lanes[key]

    names = {one.name.removeprefix("rstar2.train.") for one in own}
    for name in _PHASES:
        if name in names:
            lane(name, name)
    agents = [one for one in own if one.name.startswith("invoke_agent")]
    agents.sort(key=lambda one: (one.attributes["rstar2.episode.group"], one.start_time))
    for number, one in enumerate(agents, start=1):
        lane(one.context.span_id, f"episode {number}, group {one.attributes['rstar2.episode.group']}")
    bars = []
    for one in own:
        kind = one.name.partition(" ")[0].removeprefix("rstar2.train.")
        key = one.context.span_id if kind == "invoke_agent" else kind
        if kind in ("chat", "execute_tool"):
            key = one.parent.span_id
        start, stop = ((when - root.start_time) / 1e9 for when in (one.start_time, one.end_time))
        error = (one.attributes or {}).get("error.type")
        title = f"{one.name}: {1000 * (stop - start):.1f} ms{f', {error}' if error else ''}"
        bars.append(Bar(kind, lanes[key], start, stop, error is not None, title))
    return labels, bars


def svg_of(labels: Sequence[str], bars: Iterable[Bar]) -> str:
    """Return the picture: a row for each phase and each episode, time from left to right."""
    bars = list(bars)
    total = max(bar.stop for bar in bars)
    height = _TOP + _ROW * len(labels) + 34
    scale = _WIDTH / total
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    legend = [("phase", _PHASE), *_COLOURS.items(), ("error.type is set", _FAILED)]
    at = _LEFT
    for name, colour in legend:
        parts.append(f'<rect x="{at}" y="14" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{at + 18}" y="24" fill="#333333">{escape(name)}</text>')
        at += 40 + 7 * len(name)
    tick = _tick(total)
    for number in range(int(total / tick) + 1):
        x = _LEFT + number * tick * scale
        bottom = _TOP + _ROW * len(labels)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{bottom}" stroke="#e3e6ec"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 18}" fill="#555555" text-anchor="middle">{number * tick:g} s</text>'
        )
    for number, label in enumerate(labels):
        y = _TOP + _ROW * number + 14
        parts.append(f'<text x="{_LEFT - 10}" y="{y}" fill="#333333" text-anchor="end">{escape(label)}</text>')
    # Wide bars first, so that turns and calls lie on their episode.
    for bar in sorted(bars, key=lambda bar: bar.kind in ("chat", "execute_tool")):
        inner = bar.kind in ("chat", "execute_tool")
        y, size = _TOP + _ROW * bar.lane + (4 if inner else 2), 12 if inner else 16
        colour = _FAILED if bar.failed and inner else _COLOURS.get(bar.kind, _PHASE)
        width = max(1.0, (bar.stop - bar.start) * scale)
        parts.append(
            f'<rect x="{_LEFT + bar.start * scale:.1f}" y="{y}" width="{width:.1f}" height="{size}" rx="2" '
            f'fill="{colour}"><title>{escape(bar.title)}</title></rect>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _tick(total: float) -> float:
    """Return a round interval of which some five to ten fit."""
    for interval in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0):
        if total / interval <= 10:
            return interval
    return 30.0


def record(folder: Path) -> Sequence[Any]:
    """Train for two steps, and return the spans."""
    from recipe_run import train_recipe
    from recorded_spans import recorded_spans

    from rstar2_env.trainers.demonstration.tiny import make_tiny_model

    with recorded_spans() as found:
        train_recipe("grpo_roc", "tool", make_tiny_model(folder / "model", hidden=64, layers=2), folder / "run")
    return found.spans


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        OUT.write_text(svg_of(*bars_of(record(Path(scratch)))), "utf-8")
    print(OUT, file=sys.stderr)
