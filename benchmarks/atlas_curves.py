"""How updates move along the axes of the atlas: a sentence for each part and recipe, and a figure for each family."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Record = Mapping[str, Mapping[str, Any]]
AXES: Mapping[str, Mapping[float, str]] = {
    "group size": {2: "groups of 2", 4: "base", 8: "groups of 8", 16: "groups of 16"},
    "failure rate": {0: "base", 0.1: "seldom failing tool", 0.3: "three turns", 0.5: "failing tool"},
    "updates behind": {0: "base", 1: "1 update behind", 4: "4 updates behind", 8: "8 updates behind"},
    "turns": {1: "one turn", 2: "base", 3: "three turns", 4: "four turns"},
}
"""The case at each value of an axis. Without failures a second call is never made, so ``base`` has failure rate 0."""
COLOURS = dict(zip(AXES, ("#1f5fbf", "#c0392b", "#2a8a4a", "#8e44ad"), strict=True))
TURNED = 2.0
"""Smallest change of the angle along an axis, in degrees, that a sentence names."""
CHANGED = 1.25
"""Smallest ratio of two scales along an axis that a sentence names."""
NOISIER = 3.0
"""Smallest ratio of two noises along an axis that a sentence names."""
_QUANTITIES = ("angle, degrees", "scale", "noise")
_BESIDE = 2
Curve = list[tuple[float, float, float, float | None, float]]
"""Value on the axis, angle in degrees, scale, noise, and half the width of the interval of the angle in degrees."""


def degrees(cosine: float) -> float:
    """Return the angle of a cosine."""
    return math.degrees(math.acos(max(-1.0, min(1.0, cosine))))


def curve(record: Record, family: str, name: str, axis: str) -> Curve:
    """Return the recorded points of a part or recipe on an axis; none without an update."""
    found: Curve = []
    for value, case in AXES[axis].items():
        one = record.get(f"{family}/{name}/{case}", {})
        if "cosines" not in one or one["length"] < 1e-12:
            continue
        cosine, within = one["cosines"]["return"], 3 * one.get("within", 0.0)
        wide = degrees(cosine - within) - degrees(cosine) if within else 0.0
        found.append((value, degrees(cosine), one["scales"]["return"], one["noise"], wide))
    return found


def moves(record: Record, family: str, name: str) -> str:
    """Return the axes along which an update changes, with its figures, as text; empty if it does not change."""
    return "; ".join(text for axis in AXES if (text := _on_axis(axis, curve(record, family, name, axis))))


def _on_axis(axis: str, points: Curve) -> str:
    if len(points) < 2:
        return ""
    values, angles, scales, noises, wide = (list(each) for each in zip(*points, strict=True))
    named = []
    if max(angles) - min(angles) >= max(TURNED, *wide):
        named.append("angle " + ", ".join(f"{one:.1f}" for one in angles))
    sizes = [abs(one) for one in scales]
    if max(sizes) >= CHANGED * min(sizes) and not any(wide):
        named.append("scale " + ", ".join(f"{one:.2g}" for one in scales))
    known = [one for one in noises if one]
    if known and max(known) >= NOISIER * min(known):
        named.append("noise " + ", ".join("" if one is None else f"{one:.2g}" for one in noises))
    return f"{axis} {', '.join(f'{one:g}' for one in values)}: {', '.join(named)}" if named else ""


def alike(record: Record, family: str) -> dict[str, list[str]]:
    """Return the parts or recipes of a family by their curves, rounded to three digits; without those that lack one."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(one["name"] for one in record.values() if one["family"] == family):
        curves = [curve(record, family, name, axis) for axis in AXES]
        if any(len(points) > 1 for points in curves):
            rounded = str([[[f"{one or 0.0:.2g}" for one in point[:4]] for point in points] for points in curves])
            found.setdefault(rounded, []).append(name)
    return found


def draw_curves(record: Record, family: str, path: Path) -> None:
    """Draw a family: for each part or recipe its angle, scale and noise, each with a line for each axis."""
    from matplotlib.figure import Figure

    entries = list(alike(record, family).values())
    rows = -(-len(entries) // _BESIDE)
    columns = len(_QUANTITIES) * _BESIDE
    height = 1.1 * rows + 1.0
    figure = Figure(figsize=(13, height))
    ratios = [*[1] * len(_QUANTITIES), 0.75, *[1] * len(_QUANTITIES)]  # room for the labels of the second block
    axes = figure.subplots(rows, columns + 1, squeeze=False, width_ratios=ratios)
    figure.subplots_adjust(0.12, 0.6 / height, 0.99, 1 - 0.35 / height, wspace=0.3, hspace=0.25)
    for panel in axes[:, len(_QUANTITIES)]:
        panel.set_axis_off()
    axes = np.delete(axes, len(_QUANTITIES), 1)
    for at, names in enumerate(entries):
        row, first = at % rows, at // rows * len(_QUANTITIES)
        for number, quantity in enumerate(_QUANTITIES):
            _draw_panel(axes[row][first + number], record, family, names[0], number)
            if row == 0:
                axes[row][first + number].set_xlabel(quantity, fontsize=8)
                axes[row][first + number].xaxis.set_label_position("top")
        axes[row][first].set_ylabel(_label(names), fontsize=6, rotation=0, ha="right", va="center")
    for panel in axes[rows - (rows * _BESIDE - len(entries)) :, len(_QUANTITIES) :].flat:
        panel.set_axis_off()
    lines = [
        figure.axes[0].plot([], [], "o-", color=colour, markersize=3, label=f"{axis}: {_values(axis)}")[0]
        for axis, colour in COLOURS.items()
    ]
    figure.legend(handles=lines, loc="lower center", ncols=len(lines), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


def _draw_panel(panel: Any, record: Record, family: str, name: str, number: int) -> None:
    for axis, colour in COLOURS.items():
        places = {value: at for at, value in enumerate(AXES[axis])}
        points = [(places[point[0]], point[1 + number]) for point in curve(record, family, name, axis)]
        shown = [(x, y) for x, y in points if y is not None and (number < 2 or y > 0)]
        panel.plot(*zip(*shown, strict=True), "o-", color=colour, markersize=2, linewidth=1) if shown else None
    panel.set_xticks(range(4), [])
    panel.tick_params(labelsize=6, length=2)
    panel.grid(alpha=0.3)
    if number == len(_QUANTITIES) - 1:
        drawn = [float(y) for line in panel.lines for y in line.get_ydata()]
        if drawn:
            panel.set_yscale("log")
            panel.minorticks_off()
            ends = sorted({min(drawn), (min(drawn) * max(drawn)) ** 0.5, max(drawn)})
            panel.set_yticks(ends, [f"{one:.2g}" for one in ends])
    elif number == 0:
        panel.set_ylim(min(0.0, panel.get_ylim()[0]), max(5.0, panel.get_ylim()[1]))


def _label(names: Sequence[str]) -> str:
    shown = [*names[:4], *([f"and {len(names) - 4} more"] if len(names) > 4 else [])]
    return "\n".join(one.replace(":", ":\n") for one in shown)


def _values(axis: str) -> str:
    return ", ".join(f"{one:g}" for one in AXES[axis])


def same_curves(record: Record, family: str) -> Iterator[str]:
    """Yield a line for each set of more than four parts or recipes that share a panel."""
    for names in alike(record, family).values():
        if len(names) > 4:
            yield f"One panel for `{names[0]}` and {', '.join(f'`{name}`' for name in names[1:])}."
