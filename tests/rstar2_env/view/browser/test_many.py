"""A run of many episodes: every count is right, and only rows in view are elements. Time is measured elsewhere."""

from __future__ import annotations

import pytest
from made_runs import write_many
from playwright.sync_api import expect

from rstar2_env.core.run_folder import read_run


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("episodes", [10_000, pytest.param(100_000, marks=pytest.mark.proof)])
def test_many_episodes_are_counted_filtered_sorted_and_walked(episodes, pages, serve, tmp_path):
    folder = tmp_path / "runs" / "many"
    folder.parent.mkdir()
    total = write_many(folder, episodes)
    assert total >= episodes
    server = serve([folder.parent])
    page = pages.open(f"{server.link}#/runs/many/episodes")
    grid = page.get_by_role("grid", name="Episodes")
    expect(grid).to_have_attribute("aria-rowcount", str(total + 1), timeout=600_000)
    assert grid.locator("[role=row]").count() < 120, "rows out of view are no elements"
    last = read_run(folder).steps[-1]
    entries = read_run(folder).episodes(last)
    page.get_by_label("Steps", exact=True).fill(str(last))
    expect(grid).to_have_attribute("aria-rowcount", str(len(entries) + 1))
    page.get_by_label("Selection", exact=True).select_option(label="kept")
    expect(grid).to_have_attribute("aria-rowcount", str(sum(entry.kept for entry in entries) + 1))
    page.get_by_role("button", name="Clear all").click()
    expect(grid).to_have_attribute("aria-rowcount", str(total + 1))
    grid.focus()
    page.keyboard.press("End")
    first = read_run(folder).steps[0]
    expect(grid.locator(f"[aria-rowindex='{total + 1}']")).to_contain_text(f"train-{first}-")
    page.keyboard.press("Enter")
    expect(page.get_by_role("list", name="Conversation")).to_be_visible()
