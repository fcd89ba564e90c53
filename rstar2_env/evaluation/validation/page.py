"""Writes a report as one HTML file without network access or scripts, in which every text is escaped.

An environment's text is hostile by assumption: it can hold tags, entities, control characters. The page shows it as
text only. Not covered: the format of the JSON (docs/validation.md).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Any

from rstar2_env.evaluation.validation.bench import BenchEpisode
from rstar2_env.evaluation.validation.check import FAILED, LEVELS, Result
from rstar2_env.evaluation.validation.levels import Report

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1c2330; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: .3rem .6rem;
border-bottom: 1px solid #d8dee6; } .passed { color: #17643a; } .failed { color: #a3161a; font-weight: 600; }
.not { color: #66707c; } pre { background: #f4f6f8; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; } @media (prefers-color-scheme: dark) { body { background: #14181d; color: #d9dee5; }
pre { background: #1d232a; } .passed { color: #6fce97; } .failed { color: #ff8d8d; } td, th { border-color: #333c46; } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")


def page(report: Report) -> str:
    """Return the report as the text of one HTML file.

    Args:
        report: Results of the checks.
    """
    verdict = "fit to train on" if report.ok else f"{len(report.of(FAILED))} checks failed"
    title = _text(f"{report.env_id}: {verdict}, up to level {report.level}")
    chapters = "".join(
        f"<h2>Level {level}: {name}</h2>{_table(found)}"
        for level, name in LEVELS.items()
        if (found := [result for result in report.results if result.check.level == level])
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n'
        f"<p>{report.plays} episodes of each player from seed {report.seed}, {report.seconds:.0f} s"
        f"{', interrupted' if report.interrupted else ''}.</p>\n{chapters}</body></html>\n"
    )


def _table(results: Sequence[Result]) -> str:
    rows = "".join(_row(result) for result in results)
    return f"<table><tr><th>check</th><th>outcome</th><th>requirement and finding</th></tr>{rows}</table>\n"


def _row(result: Result) -> str:
    kind = result.outcome.split()[0]
    parts = [f"{_text(result.check.demands)}<br><em>{_text(result.said)}</em>"]
    if result.figures:
        figures = json.dumps(result.figures, ensure_ascii=False, default=str)
        parts.append(f"<br><code>{_text(figures)}</code>")
    if result.outcome == FAILED:
        parts.append(f"<p>Remedy: {_text(result.check.remedy)}</p>")
    parts += [_episode(played) for played in result.evidence]
    return (
        f"<tr><td><code>{_text(result.check.name)}</code></td>"
        f'<td class="{_text(kind)}">{_text(result.outcome)}</td><td>{"".join(parts)}</td></tr>\n'
    )


def _episode(played: BenchEpisode) -> str:
    shown = played.to_dict()
    turns = "".join(
        f"<p>Turn {number}, reward {turn['reward']:g}</p><pre>{_text(turn['action'])}</pre>"
        f"<pre>{_text(turn['text'])}</pre>"
        for number, turn in enumerate(shown["turns"], 1)
    )
    head = f"{shown['player']}, seed {shown['seed']}: reward {shown['reward']:g}, {shown['end'] or 'no end named'}"
    return f"<details><summary>{_text(head)}</summary><pre>{_text(shown['question'])}</pre>{turns}</details>"


def _text(value: Any) -> str:
    """Return a text escaped for HTML, with control and direction characters as code points."""
    said = _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", str(value))
    return html.escape(said.encode("utf-8", "replace").decode("utf-8"), quote=True)
