"""How updates move along the axes of the atlas: a sentence for each part and recipe, and a figure for each family."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Record = Mapping[str, Mapping[str, Any]]
AXES: Mapping[str, Mapping[float, str]] = {
    "group size": {2: "groups of 2", 4: "base", 8: "groups of 8", 16: "groups of 16"},
    "failure rate": {0: "base", 0.1: "seldom failing tool", 0.3: "three turns", 0.5: "failing tool"},
    "updates behind": {0: "base", 1: "1 update behind", 4: "4 updates behind", 8: "8 updates behind"},
    "turns": {1: "one turn", 2: "base", 3: "three turns", 4: "four turns"},
}
"""The case at each value of an axis. Without failures a second call is never made, so ``base`` has failure rate 0."""
SAMPLES = 500
"""Sampled groups of a case that is only on an axis."""
COLOURS = dict(zip(AXES, ("#1f5fbf", "#c0392b", "#2a8a4a", "#8e44ad"), strict=True))
TURNED = 2.0
"""Smallest change of the angle along an axis, in degrees, that a sentence names."""
CHANGED = 1.25
"""Smallest ratio of two scales along an axis that a sentence names."""
NOISIER = 3.0
"""Smallest ratio of two noises along an axis that a sentence names."""
NOTHING = 1e-12
"""Length of an update, and absolute value of a scale, below which it is only rounding."""
_NO_NOISE = 1e-9
_WITHOUT_ANGLE = ("turns", 1)
_QUANTITIES = ("angle, degrees", "scale", "noise")
_BESIDE = 2
_MOVES = """\
The column *moves with* lists the figures that change along one of four axes: *group size*, *failure rate*, *updates
behind* and *turns*. A change must be large enough: at least {turned:g} degrees for an angle (if groups were sampled, at
least two of the intervals must not overlap), a factor of {changed:g} for a scale (only if the update was computed over
all groups), and a factor of {noisier:g} for a noise. The plots below each table show all three figures along all four
axes, whether or not they change. If groups were sampled, a vertical line shows the interval of the angle, and the
number of sampled groups is {samples} in the rows of the table *Worlds* from *{few}* down, and {more} in the rows above.

- *Updates behind* is the staleness, in updates, of the weights that sampled the episodes. Older weights are the
  current weights minus {rate:g} times the true gradient at the current weights; each further update repeats this step.
- With *turns* 1, the policy has only one decision. An update along a policy gradient then has the angle 0 or 180 by
  construction, so worlds with *turns* 1 are left out when angles are compared. The worlds with *turns* 3 and with
  *failure rate* 0.3 are the same: from 2 to 3 turns, the failure rate also changes from 0 to 0.3.
"""


class Point(NamedTuple):
    """A part or recipe at one value of an axis.

    Attributes:
        value: Value on the axis.
        angle: Angle in degrees.
        scale: Scale; 0 if it is only rounding.
        noise: Noise; 0 if it is only rounding.
        low: Lower end of the interval of the angle, in degrees; the angle if all groups were listed.
        high: Upper end of the interval.
    """

    value: float
    angle: float
    scale: float
    noise: float
    low: float
    high: float


Curve = list[Point]


def degrees(cosine: float) -> float:
    """Return the angle of a cosine."""
    return math.degrees(math.acos(max(-1.0, min(1.0, cosine))))


def explained(rate: float, more: int, few: str) -> str:
    """Return the text that explains the sentences and the figures.

    Args:
        rate: Learning rate of the updates that older weights lack.
        more: Sampled groups of a case that is not on an axis alone.
        few: First case with ``SAMPLES`` groups.
    """
    bounds = {"turned": TURNED, "changed": CHANGED, "noisier": NOISIER}
    return _MOVES.format(rate=rate, more=more, few=few, samples=SAMPLES, **bounds)


def interval(one: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the lower end, the angle to the gradient of the return, and the upper end, in degrees, of a case."""
    cosine, within = one["cosines"]["return"], 3 * one.get("within", 0.0)
    return degrees(cosine + within), degrees(cosine), degrees(cosine - within)


def curve(record: Record, family: str, name: str, axis: str) -> Curve:
    """Return the recorded points of a part or recipe on an axis; none without an update."""
    found: Curve = []
    for value, case in AXES[axis].items():
        one = record.get(f"{family}/{name}/{case}", {})
        if "cosines" not in one or one["length"] < NOTHING:
            continue
        low, angle, high = interval(one)
        scale, noise = one["scales"]["return"], one["noise"] or 0.0
        scale, noise = scale if abs(scale) > NOTHING else 0.0, noise if noise >= _NO_NOISE else 0.0
        found.append(Point(value, angle, scale, noise, low, high))
    return found


def moves(record: Record, family: str, name: str) -> str:
    """Return the axes along which an update changes, with its figures, as text; empty if it does not change."""
    return "; ".join(text for axis in AXES if (text := _on_axis(axis, curve(record, family, name, axis))))


def _on_axis(axis: str, points: Curve) -> str:
    if len(points) < 2:
        return ""
    named = []
    if _turns([point for point in points if (axis, point.value) != _WITHOUT_ANGLE]):
        named.append("angle " + ", ".join(f"{point.angle:.1f}" for point in points))
    sizes = [abs(point.scale) for point in points]
    listed = all(point.low == point.high for point in points)
    if listed and max(sizes) > 0 and max(sizes) >= CHANGED * min(sizes):
        named.append("scale " + ", ".join(f"{point.scale:.2g}" for point in points))
    known = [point.noise for point in points if point.noise]
    if known and max(known) >= NOISIER * min(known):
        named.append("noise " + ", ".join(f"{point.noise:.2g}" for point in points))
    return f"{axis} {', '.join(f'{point.value:g}' for point in points)}: {', '.join(named)}" if named else ""


def _turns(points: Curve) -> bool:
    """Return whether the angle changes by ``TURNED``, and two of the intervals do not overlap."""
    angles = [point.angle for point in points]
    return max(angles) - min(angles) >= TURNED and max(one.low for one in points) > min(one.high for one in points)


def alike(record: Record, family: str) -> dict[str, list[str]]:
    """Return the parts or recipes of a family by their curves as text; without those that lack a curve.

    The text has one decimal of each angle and of the ends of its interval, and two significant digits of each scale and
    noise, so curves in one list look equal in a figure.
    """
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(one["name"] for one in record.values() if one["family"] == family):
        curves = [curve(record, family, name, axis) for axis in AXES]
        if any(len(points) > 1 for points in curves):
            found.setdefault(str([[_rounded(point) for point in points] for points in curves]), []).append(name)
    return found


def _rounded(point: Point) -> str:
    angles = " ".join(f"{one:.1f}" for one in (point.low, point.angle, point.high))
    return f"{point.value:g} {angles} {point.scale:.2g} {point.noise:.2g}"


def draw_curves(record: Record, family: str, path: Path) -> bool:
    """Draw a family: for each part or recipe its angle, scale and noise, each with a line for each axis.

    Returns:
        Whether there is a curve; otherwise no file is written.
    """
    from matplotlib.figure import Figure

    entries = list(alike(record, family).values())
    if not entries:
        return False
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
    return True


def _draw_panel(panel: Any, record: Record, family: str, name: str, number: int) -> None:
    for axis, colour in COLOURS.items():
        places = {value: at for at, value in enumerate(AXES[axis])}
        points = curve(record, family, name, axis)
        shown = [(places[point.value], point[1 + number]) for point in points if number < 2 or point.noise]
        for point in points if number == 0 else ():
            if point.high > point.low:
                panel.vlines(places[point.value], point.low, point.high, color=colour, linewidth=1, alpha=0.6)
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
            yield f"{', '.join(f'`{name}`' for name in names[:-1])} and `{names[-1]}` have the same curves."
