"""Writes a report as one HTML file without network access or scripts, in which every text is escaped.

Any text of an environment may be hostile: it can contain tags, entities, control characters. The page shows it as text
only. Not covered: the format of the JSON (docs/validation.md).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rstar2_env.evaluation.report_page import document, escaped
from rstar2_env.evaluation.validation.bench import BenchEpisode
from rstar2_env.evaluation.validation.check import FAILED, LEVELS, Result
from rstar2_env.evaluation.validation.levels import Report


def page(report: Report) -> str:
    """Return the report as the text of one HTML file.

    Args:
        report: Results of the checks.
    """
    verdict = "fit to train on" if report.ok else f"{len(report.of(FAILED))} checks failed"
    title = f"{report.env_id}: {verdict}, up to level {report.level}"
    chapters = "".join(
        f"<h2>Level {level}: {name}</h2>{_table(found)}"
        for level, name in LEVELS.items()
        if (found := [result for result in report.results if result.check.level == level])
    )
    said = (
        f"<p>{report.plays} episodes of each scripted player from seed {report.seed}, {report.seconds:.0f} s"
        f"{', interrupted' if report.interrupted else ''}.</p>\n"
    )
    return document(title, f"{said}{chapters}")


def _table(results: Sequence[Result]) -> str:
    rows = "".join(_row(result) for result in results)
    return f"<table><tr><th>check</th><th>outcome</th><th>requirement and finding</th></tr>{rows}</table>\n"


def _row(result: Result) -> str:
    kind = result.outcome.split()[0]
    parts = [f"{escaped(result.check.demands)}<br><em>{escaped(result.said)}</em>"]
    if result.figures:
        figures = json.dumps(result.figures, ensure_ascii=False, default=str)
        parts.append(f"<br><code>{escaped(figures)}</code>")
    if result.outcome == FAILED:
        parts.append(f"<p>Remedy: {escaped(result.check.remedy)}</p>")
    parts += [_episode(played) for played in result.evidence]
    return (
        f"<tr><td><code>{escaped(result.check.name)}</code></td>"
        f'<td class="{escaped(kind)}">{escaped(result.outcome)}</td><td>{"".join(parts)}</td></tr>\n'
    )


def _episode(played: BenchEpisode) -> str:
    shown = played.to_dict()
    turns = "".join(
        f"<p>Turn {number}, reward {turn['reward']:g}</p><pre>{escaped(turn['action'])}</pre>"
        f"<pre>{escaped(turn['text'])}</pre>"
        for number, turn in enumerate(shown["turns"], 1)
    )
    head = f"{shown['player']}, seed {shown['seed']}: reward {shown['reward']:g}, {shown['end'] or 'no end named'}"
    return f"<details><summary>{escaped(head)}</summary><pre>{escaped(shown['question'])}</pre>{turns}</details>"
