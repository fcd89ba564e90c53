"""docs/metrics.md is generated from the table of metrics and from the checks."""

from __future__ import annotations

import re

import metrics_page
from places import DOCS

from rstar2_env.diagnosis.metric_table import METRICS
from rstar2_env.diagnosis.metrics import checks_of


def test_the_page_of_metrics_is_that_of_the_code() -> None:
    page = (DOCS / metrics_page.PAGE).read_text("utf-8")
    assert page == metrics_page.metrics_page(), "run: python tools/docs_site/metrics_page.py docs/metrics.md"


def test_every_metric_has_a_section_with_unit_meaning_healthy_range_and_checks() -> None:
    page = metrics_page.metrics_page()
    _, *sections = re.split(r"^### ", page, flags=re.MULTILINE)
    metrics = [metric for group in METRICS.values() for metric in group]
    assert len(sections) == len(metrics)
    for metric, section in zip(metrics, sections, strict=True):
        assert section.startswith(f"`{metric.names[0]}`\n\n{metric.meaning}\n\n")
        assert f"| [`{metric.names[0]}`](#" in page
        assert all(f"`{name}`" in section for name in metric.names)
        assert f"- **Unit:** {metric.unit}.\n" in section
        assert re.search(r"^- \*\*Healthy range:\*\* \S+", section, re.MULTILINE)
        for one in checks_of(metric):
            assert (
                f"[`{one.name}`](diagnosis-checks.md#{one.name}) ({one.severity}) looks at {one.looks_at}. " in section
            )
