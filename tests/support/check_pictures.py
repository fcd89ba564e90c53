"""Draws the pictures of docs/diagnosis-checks.md: for each check, the figure that it judges, with and without a fault.

``python tests/support/check_pictures.py`` writes docs/pictures/checks/CHECK.svg. The runs are those of
``diagnosed_cases``, on which the tests see each check fire and stay silent. Where curves of the two runs
would not show the difference, the picture shows the numbers of the evidence. The title says which of both it shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import wrap

from diagnosed_cases import CASES
from places import DOCS

from rstar2_env.core.files.outputs import replacing
from rstar2_env.diagnosis.base import CHECKS, Evidence, RunCheck
from rstar2_env.diagnosis.examination import every_check
from rstar2_env.diagnosis.record import FigurePoint, RunRecord

FOLDER = DOCS / "pictures" / "checks"
WIDTH, HEIGHT, EDGE, GAP = 220, 56, 8, 28


def pictures() -> dict[str, str]:
    """Return the picture of each check as SVG, by the name of the check."""
    every_check()
    return {name: picture(name) for name in CASES}


def picture(name: str) -> str:
    """Return the picture of a check as SVG: the run with the fault on the left, the look-alike on the right."""
    check = CHECKS.get(name)
    faulty, alike = (made() for made in CASES[name])
    found = check.look(faulty)
    assert found is not None, f"The check {name} does not fire on its own case."
    assert check.look(alike) is None, f"The check {name} fires on its look-alike."
    figure = _figure(check, found, faulty, alike)
    body = _curves(figure, found, faulty, alike) if figure else _numbers(found)
    whole, tall = 2 * WIDTH + GAP, HEIGHT + 34
    title = (
        f"{figure}: {name} fires on the left, and is silent on the right"
        if figure
        else f"The figures that a finding of {name} reports"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {tall}" width="{whole}" height="{tall}" '
        f'font-family="sans-serif" font-size="11" fill="#777"><title>{escape(title)}</title>\n{body}\n</svg>\n'
    )


def _curves(figure: str, found: Evidence, faulty: RunRecord, alike: RunRecord) -> str:
    both = [_points(run, figure) for run in (faulty, alike)]
    values = [value for points in both for _, value in points if math.isfinite(value)]
    low, high = min(0.0, *values), max(values)
    panels = [
        _panel(points, low, high, at * (WIDTH + GAP), since)
        for at, (points, since) in enumerate(zip(both, (found.since, None), strict=True))
    ]
    labels = [
        _text(0, 12, f"{figure.removeprefix('share/')}, {low:.4g} to {high:.4g}"),
        _text(0, HEIGHT + 31, f"steps {both[0][0][0]} to {both[0][-1][0]}; fires from step {found.since}"),
        _text(WIDTH + GAP, HEIGHT + 31, "a look-alike: silent"),
    ]
    return "\n".join([*panels, *labels])


def _numbers(found: Evidence) -> str:
    """Draw the numbers of the evidence as bars, each with its name."""
    most = max([abs(value) for value in found.figures.values()], default=0.0) or 1.0
    lines = [_text(0, 12, "the check fires, with this evidence:"), _text(WIDTH + GAP, 12, "a look-alike: silent")]
    if not found.figures:
        lines += [_text(0, 34 + 15 * at, line) for at, line in enumerate(wrap(found.says, 76))]
    for at, (name, value) in enumerate(found.figures.items()):
        top = 20 + 18 * at
        length = round(WIDTH * abs(value) / most)
        lines.append(f'<rect x="0" y="{top}" width="{length}" height="4" fill="#cc3311"/>')
        lines.append(_text(0, top + 14, f"{name}: {value:.3g}"))
    return "\n".join(lines)


def _text(left: int, top: int, text: str) -> str:
    return f'<text x="{left}" y="{top}">{escape(text)}</text>'


def _figure(check: RunCheck, found: Evidence, faulty: RunRecord, alike: RunRecord) -> str:
    """Return the figure that a check judges and in which the two runs differ most; empty if it judges none.

    It was reduced from episodes, or ``looks_at`` names it and the evidence or ``needs`` has it. Other figures of the
    evidence only explain the finding.
    """
    reduced = [name for name, value in faulty.steps[-1]._reduced.items() if isinstance(value, (int, float))]
    needed = [one for need in check.needs for one in need.split("|")]
    named = [one for one in (*found.figures, *needed) if one in check.looks_at]
    candidates = [one for one in (*named, *reduced) if len(_points(faulty, one)) > 1]
    distances = {one: _distance(one, faulty, alike) for one in candidates}
    figure = max(distances, key=lambda one: distances[one], default="")
    return figure if figure and distances[figure] > 0 else ""


def _distance(figure: str, faulty: RunRecord, alike: RunRecord) -> float:
    """Return the largest difference of two runs at one step, as a share of their largest value.

    Steps at which the look-alike has no value count as 0, and values of the fault that are not finite as the largest.
    """
    others = dict(_points(alike, figure))
    if len(others) < 2:
        return 0.0
    pairs = [(value, others.get(step, 0.0)) for step, value in _points(faulty, figure) if step <= alike.last]
    if not all(math.isfinite(value) for value, _ in pairs):
        return 1.0
    largest = max((abs(value) for pair in pairs for value in pair), default=0.0)
    return max((abs(a - b) for a, b in pairs), default=0.0) / (largest or 1.0)


def _points(run: RunRecord, figure: str) -> list[FigurePoint]:
    if figure == "evaluations":
        return [(one.number, one.figures["pass_rate"]) for one in run.evaluations]
    if run.series(figure):
        return run.points(figure)
    own = ((step.number, step._reduced.get(figure)) for step in run.steps)
    return [(number, float(value)) for number, value in own if isinstance(value, (int, float))]


def _panel(points: Sequence[FigurePoint], low: float, high: float, left: int, since: int | None) -> str:
    first, last = points[0][0], points[-1][0]

    def place(step: int, value: float) -> str:
        x = left + EDGE + (WIDTH - 2 * EDGE) * (step - first) / max(1, last - first)
        y = 18 + HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value - low) / ((high - low) or 1.0)
        return f"{x:.0f},{y:.1f}"

    points = [point for point in points if math.isfinite(point[1])]
    before = [place(*point) for point in points if since is None or point[0] <= since]
    after = [place(*point) for point in points if since is not None and point[0] >= since]
    frame = f'<rect x="{left}" y="18" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>'
    return "\n".join([frame, _line(before, "#4477aa"), _line(after, "#cc3311")])


def _line(places: Sequence[str], colour: str) -> str:
    """Draw a curve; a single value is a dot."""
    if len(places) == 1:
        x, y = places[0].split(",")
        return f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
    return f'<polyline points="{" ".join(places)}" fill="none" stroke="{colour}" stroke-width="2"/>'


def write(folder: Path = FOLDER) -> None:
    """Write the pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawn in pictures().items():
        with replacing(folder / f"{name}.svg") as partial:
            partial.write_text(drawn, "utf-8")


if __name__ == "__main__":
    write()
