"""Groups of every selector, and the rounds of refill, as the browser shows them."""

from __future__ import annotations

import pytest
from page_words import page_words
from playwright.sync_api import expect
from selected_runs import SELECTED, write_selected

from rstar2_env.core.run_folder import read_run


@pytest.fixture
def look_at(pages, serve, tmp_path):
    """Makes the run of a selector and opens a view of it: ``look_at("roc", "groups")``."""
    servers = {}

    def open_view(name, view):
        if name not in servers:
            write_selected(tmp_path / name / name, name)
            servers[name] = serve([tmp_path / name])
        return pages.open(f"{servers[name].link}#/runs/{name}/{view}"), read_run(tmp_path / name / name)

    return open_view


def groups_of(run):
    """Every group of a run."""
    return [group for step in run.steps for group in run.groups(step)]


@pytest.mark.parametrize("name", SELECTED)
def test_a_selector_is_explained_with_its_reasons_and_the_numbers_of_a_group(name, look_at):
    page, run = look_at(name, "groups")
    card = page.get_by_role("region", name="Selector")
    expect(card).to_contain_text(f"Selector {name}")
    expect(card).to_contain_text(page_words("SELECTORS")[name])
    card.get_by_text("Explanation of the reasons").click()
    reasons = {one.decision.reason for group in groups_of(run) for one in group if not one.kept}
    for reason in reasons:
        expect(card.locator("dl div").filter(has_text=page_words("REASONS")[reason])).to_contain_text(reason)
    # The reason that this selector has before others, in a group that has it.
    reason = next(one for one in ("band", "deviation", "few", "penalty", "quota") if one in SELECTED[name].reasons)
    group = next(one for one in groups_of(run) if reason in {entry.decision.reason for entry in one})
    page, _ = look_at(name, f"groups/{group[0].step}/{group[0].episode.group}")
    told = page.get_by_role("main")
    dropped = sum(one.decision.reason == reason for one in group)
    expect(told).to_contain_text(f"{dropped} dropped: {reason}. {page_words('REASONS')[reason]}")
    table = page.get_by_role("region", name="Episodes of the group")
    expect(table.get_by_text(reason, exact=False).first).to_be_visible()
    for number in {number for one in group for number in one.decision.weighed}:
        head = page_words("NUMBER_LABELS").get(number, number.replace("_", " ").capitalize())
        meant = page_words("NUMBERS")[number]
        expect(told.locator(f'th[title="{meant}"], .chip[title="{meant}"]')).to_contain_text(head)


def test_every_round_of_refill_can_be_chosen_and_is_told_of_its_groups(look_at):
    page, run = look_at("balanced_band", "groups")
    rounds = [group[0].decision.round for group in groups_of(run)]
    assert max(rounds) > 3
    choose = page.get_by_label("Round", exact=True)
    refills = [f"refill {number}" for number in range(1, max(rounds) + 1)]
    expect(choose.locator("option")).to_have_text(["all", "first", *refills])
    grid = page.get_by_role("grid", name="Groups")
    expect(grid).to_have_attribute("aria-rowcount", str(len(rounds) + 1))
    choose.select_option(label=refills[-1])
    expect(grid).to_have_attribute("aria-rowcount", str(rounds.count(max(rounds)) + 1))
    rows = grid.locator(".table-body [role=row]")
    expect(rows).to_have_count(rounds.count(max(rounds)))
    assert all(refills[-1] in text for text in rows.all_inner_texts())
    rows.first.locator("a").first.click()
    expect(page.locator(".page-facts .chip", has_text=refills[-1])).to_be_visible()
    page.go_back()
    choose.select_option(label="first")
    expect(grid).to_have_attribute("aria-rowcount", str(rounds.count(0) + 1))
