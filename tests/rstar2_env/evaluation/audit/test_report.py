"""Claims about the report of an audit, as JSON and as a page."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rstar2_env.evaluation.audit.page import page
from rstar2_env.evaluation.audit.report import AuditFinding, AuditReport, CauseRow
from rstar2_env.evaluation.figures.statistics import wilson

HOSTILE = "</pre><script>alert(1)</script>\u202e\x00"
FINDING = AuditFinding("exploit", "a constant text", f"said {HOSTILE}", "5", HOSTILE, 3, 4, f"# {HOSTILE}", HOSTILE)


@pytest.fixture
def report():
    return AuditReport(
        target=f"grader.py:{HOSTILE}",
        kind="a Python function",
        versions={"Python": "3.11"},
        form=("{}", "{}"),
        paid_at=0.5,
        golds={"integers": 40},
        score=wilson(0.75, 100),
        findings=[FINDING],
        unconfirmed=["paid (x): y"],
        causes=[CauseRow("cause", False, 100, 25, True), CauseRow("spelling", True, 8, 8, False)],
        grades=100,
        seconds=1.0,
    )


def test_the_page_shows_hostile_texts_as_text_and_loads_nothing(report):
    text = page(report)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\u202e" not in text
    assert "default-src 'none'" in text
    assert "http://" not in text
    assert "https://" not in text


def test_a_spelling_that_is_not_read_is_shown_as_such(report):
    assert '<td class="not">8 (not supported)</td>' in page(report)
    assert '<td class="failed">25</td>' in page(report)


def test_the_report_is_json(report):
    told = json.loads(json.dumps(report.to_dict()))
    assert told["ok"] is False
    assert told["score"] == 0.75
    assert told["score_interval"] == pytest.approx([0.6569, 0.8246], abs=1e-4)
    assert told["cheapest_exploit"] == {"answer": HOSTILE, "paid": 3, "golds": 4}
    assert told["found"] == {"exploit": 1} | {kind: 0 for kind in told["found"] if kind != "exploit"}


def test_the_cheapest_exploit_costs_the_fewest_characters_for_a_paid_gold(report):
    long, rare = replace(FINDING, answer="x" * 50, found=4), replace(FINDING, answer="x" * 10, found=1, tried=40)
    assert replace(report, findings=[rare, long]).cheapest is long
    assert replace(report, findings=[replace(FINDING, kind="paid")]).cheapest is None


def test_an_audit_without_pairs_has_no_score(report):
    empty = replace(report, score=replace(report.score, value=float("nan")), causes=[])
    assert empty.to_dict()["score"] is None
    assert empty.rows()["pairs graded correctly"].startswith("none")
