"""Write docs/metrics.md from the table of metrics and the checks: ``python tools/docs_site/metrics_page.py PAGE``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from rstar2_env.diagnosis.metric_table import METRICS
from rstar2_env.diagnosis.metrics import Metric, checks_of

PAGE = "metrics.md"
_HEAD = """\
<!-- Made by `python tools/docs_site/metrics_page.py docs/metrics.md`. Change the tables in the code instead. -->

# Metrics of training

The metrics in `metrics.jsonl`, with unit, meaning and healthy range. Each metric is a sum divided by a count. The sum
and the count are accumulated over all processes and over all steps since the previous line. A metric without
observations is omitted.

`rollout/…` covers all played episodes, `kept/…` the episodes that are trained on, and `eval/…` held-out problems. A
word in capitals stands for the name of a status, an end, a component of the reward, a kind of problem, or a reason
([trainers.md](trainers.md)). `DEPTH` is the number of tool calls before the token: `depth_0`, `depth_1`, `depth_2` or
`depth_3_or_more`. A share is a number from 0 to 1.

Healthy ranges agree with the checks of [`rstar2 diagnose`](diagnosis.md) that read the metric. A check is listed
under every metric that it looks at. If a level depends on the model, the machine or the problems, the metric's entry
says so.
"""


def metrics_page() -> str:
    """Return the page: by group, a table of its metrics, and a section for each."""
    return "\n".join([_HEAD, *(_group(title, metrics) for title, metrics in METRICS.items())])


def _group(title: str, metrics: Iterable[Metric]) -> str:
    rows = [f"| {_linked(metric)} | {metric.meaning} |" for metric in metrics]
    table = "\n".join(["| metric | meaning |", "|---|---|", *rows])
    return f"## {title}\n\n{table}\n\n" + "\n".join(map(_section, metrics))


def _section(metric: Metric) -> str:
    checks = [
        f"    - [`{one.name}`](diagnosis-checks.md#{one.name}) ({one.severity}) looks at {one.looks_at}. "
        f"Rule: {one.rule.replace(': ', '. Reason: ', 1)}."
        for one in checks_of(metric)
    ]
    lines = [
        f"### `{metric.names[0]}`\n\n{metric.meaning}\n",
        *([f"- **Names:** {', '.join(f'`{name}`' for name in metric.names)}."] if len(metric.names) > 1 else []),
        f"- **Unit:** {metric.unit}.",
        f"- **Healthy range:** {metric.healthy}",
        *(["- **Read by:**", *checks] if checks else []),
    ]
    return "\n".join(lines) + "\n"


def _linked(metric: Metric) -> str:
    name = metric.names[0]
    anchor = re.sub(r"[^\w-]", "", name.lower())
    return f"[`{name}`](#{anchor})"


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(metrics_page(), "utf-8")
