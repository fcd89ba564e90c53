"""The exported page, opened from disk: every view, filters and searches, without a server and without a network."""

from __future__ import annotations

from chromium import barriers, settle
from hostile_run import write_hostile
from playwright.sync_api import expect

from rstar2_env.core.run_folder import read_run
from rstar2_env.view.export.write import write_export


def test_an_export_shows_every_view_from_disk(from_disk, runs, tmp_path):
    file = tmp_path / "page.html"
    write_export(
        [runs / "roc-0", runs / "eval-before", runs / "eval-after"], file, episodes=1000, cache=tmp_path / "cache"
    )
    text = file.read_text("utf-8")
    assert 'src="http' not in text
    assert 'href="http' not in text
    run = read_run(runs / "roc-0")
    kept = [one for step in run.steps for one in run.episodes(step) if one.kept]
    page = from_disk(file)
    expect(page.locator(".run-name")).to_have_count(3)
    start = file.as_uri()
    page.get_by_role("link", name="roc-0", exact=True).click()
    expect(page.locator("canvas").first).to_be_visible()
    for view, name in (
        ("runs/roc-0/episodes?kept=1", "Episodes"),
        ("runs/roc-0/groups", "Groups"),
        ("runs/roc-0/problems", "Problems"),
        ("compare?a=eval-after&b=eval-before", "Problems that occur in both runs"),
        ("compare?a=eval-before&b=eval-after", "Problems that occur in both runs"),
    ):
        page.goto(f"{start}#/{view}")
        settle(page)
        grid = page.get_by_role("grid", name=name)
        expect(grid.locator(".table-body [role=row]").first).to_be_visible()
        if name == "Episodes":
            expect(grid).to_have_attribute("aria-rowcount", str(len(kept) + 1))
            page.get_by_role("searchbox").fill('"attempt 3"')
            said = [one for one in kept if any("attempt 3" in message.content for message in one.episode.messages)]
            expect(grid).to_have_attribute("aria-rowcount", str(len(said) + 1))
            grid.locator(".table-body [role=row] a").first.click()
            expect(page.get_by_role("list", name="Conversation")).to_contain_text("attempt 3")
    expect(page.get_by_label("Figures of both runs")).to_contain_text("▲")
    page.goto(f"{start}#/runs/roc-0")
    page.get_by_role("link", name="Compare two steps").click()
    figures = page.get_by_label("Figures of both runs")
    for step in (min(run.evaluated_steps), max(run.evaluated_steps)):
        expect(figures).to_contain_text(f"after step {step}")
    names = figures.locator("dt")
    before = names.all_inner_texts()[:2]
    page.get_by_role("button", name="Swap").click()
    expect(names.first).to_have_text(before[1])
    assert names.all_inner_texts()[:2] == before[::-1]
    page.get_by_label("Split").select_option("train")
    trained = [step for step in run.steps if list(run.episodes(step))]
    for step in (min(trained), max(trained)):
        expect(figures).to_contain_text(f"after step {step}")
    expect(page.get_by_role("grid").locator(".table-body [role=row]").first).to_be_visible()
    page.goto(f"{start}#/runs/roc-0/groups/2/0")
    expect(page.get_by_role("region", name="Episodes of the group").locator("tbody tr").first).to_be_visible()
    page.goto(f"{start}#/runs/roc-0/sampler")
    expect(page.get_by_role("heading", name="Hardest problems")).to_be_visible()
    assert barriers(page) == []


def test_a_hostile_run_is_text_in_an_export_too(from_disk, tmp_path):
    made = write_hostile(tmp_path / "runs")
    file = tmp_path / "page.html"
    write_export([made.folder], file, episodes=100, cache=tmp_path / "cache")
    page = from_disk(file)
    page.locator(".run-name").first.click()
    expect(page.locator("h1")).to_be_visible()
    page.get_by_role("link", name="Episodes").first.click()
    page.locator(".table-body [role=row] a").first.click()
    expect(page.get_by_role("list", name="Conversation")).to_be_visible()
    assert page.locator("main :is(script, iframe, object, img, base, style)").count() == 0
