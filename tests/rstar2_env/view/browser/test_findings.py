"""The findings on the overview of a run: what is wrong, since when, its evidence, and what to change."""

from __future__ import annotations

import re
import threading

import pytest
from chromium import PATIENCE_MS, barriers
from faulty_runs import SINCE, write_faulty
from playwright.sync_api import expect

from rstar2_env.diagnosis import diagnose
from rstar2_env.view.queries.findings import RunFindings, findings_of


@pytest.fixture
def overview(pages, serve, tmp_path):
    """Writes a faulty run and opens its overview: ``overview(until=6)``."""

    def open_view(**options):
        run = write_faulty(tmp_path / "runs" / "faulty", **options)
        return pages.open(f"{serve([run]).link}#/runs/faulty"), diagnose(run)

    return open_view


def card(page, finding):
    """The card of a finding."""
    found = page.get_by_role("region", name="Findings").locator(".finding", has_text=finding.title)
    expect(found).to_have_count(1)
    return found


def test_a_finding_has_its_severity_its_steps_its_evidence_its_cause_and_what_to_change(overview):
    page, found = overview()
    for finding in (one for one in found if one.until is None):
        shown = card(page, finding)
        for text in (finding.severity, f"since step {finding.since}", finding.says.replace("`", "")):
            expect(shown).to_contain_text(text)
        if shown.locator("details[open]").count() == 0:
            shown.get_by_text("Cause and remedy").click()
        for text in (finding.cause, *finding.change, finding.otherwise):
            expect(shown.locator("details")).to_contain_text(text.replace("`", ""))
        expect(shown.locator(".finding-change")).to_have_count(len(finding.change))
    assert "gradient_zero" in found.names
    assert barriers(page) == []


def test_an_episode_of_a_finding_is_one_click_away(overview):
    page, found = overview()
    finding = next(one for one in found if one.check == "gradient_zero")
    links = card(page, finding).locator(".finding-episodes a")
    assert links.all_inner_texts() == list(finding.episodes)
    links.first.click()
    expect(page).to_have_url(re.compile(rf"#/runs/faulty/episodes/{finding.episodes[0]}$"))
    expect(page.get_by_role("list", name="Conversation")).to_be_visible()


def test_a_finding_that_ended_is_folded(overview):
    page, found = overview(steps=12, until=8)
    finding = next(one for one in found if one.check == "gradient_zero")
    assert (finding.since, finding.until) == (SINCE, 8)
    shown = card(page, finding)
    expect(shown).to_be_hidden()
    page.get_by_text(re.compile(r"^\d+ findings? ended$")).click()
    expect(shown).to_contain_text(f"step {SINCE} to 8")


def test_the_page_is_there_before_the_findings_which_follow_by_themselves(pages, serve, tmp_path, monkeypatch):
    run = write_faulty(tmp_path / "runs" / "faulty")
    server, allowed = serve([run]), threading.Event()

    def look(path, name):
        allowed.wait(PATIENCE_MS / 1000)
        return findings_of(path, name)

    monkeypatch.setattr(server.answers, "_found", RunFindings(look))
    page = pages.open(f"{server.link}#/runs/faulty/events")
    page.get_by_role("button", name="Live").click()
    expect(page.get_by_role("button", name="Paused")).to_be_visible()
    with page.expect_response("**/findings") as first:
        page.get_by_role("link", name="Overview").click()
    assert first.value.json().keys() == {"again_s"}
    expect(page.get_by_role("region", name="Health")).to_be_visible()
    found = page.get_by_role("region", name="Findings")
    expect(found).to_contain_text("Diagnosing the run")
    allowed.set()
    expect(found).to_contain_text("The gradient is zero")
