"""Every view and what is opened on it, wide and narrow, light and dark, from a server and from a file.

No barrier that axe finds, and no wider than its window.
"""

from __future__ import annotations

import pytest
from chromium import barriers
from playwright.sync_api import expect

from rstar2_env.core.run_folder import read_run
from rstar2_env.view.export.write import write_export

ENDS = ((1440, "light"), (390, "dark"))
OTHERS = ((1440, "dark"), (390, "light"))
"""Widths and colours."""
VIEWS = {
    "runs": "",
    "run": "runs/roc-0",
    "evaluation": "runs/eval-after",
    "side by side": "overview?runs=roc-0,grpo-0",
    "episodes": "runs/roc-0/episodes",
    "episode": "runs/roc-0/episodes/train-3-1",
    "groups": "runs/roc-0/groups",
    "group": "runs/roc-0/groups/3/0",
    "sampler": "runs/curriculum/sampler",
    "problems": "runs/roc-0/problems",
    "problem": "runs/roc-0/problems/made-0001",
    "compare": "compare?a=eval-before&b=eval-after",
    "two steps": "compare?a=roc-0&b=roc-0&split=eval&a_step=0&b_step=8",
    "pair": "pair?a=eval-before/eval-0-1&b=eval-after/eval-0-1",
    "recipe": "runs/roc-0/recipe",
    "events": "runs/roc-0/events",
}


def tokens(look, runs):
    """The tokens of an episode, with one in detail."""
    run = read_run(runs / "roc-0")
    entries = run.episodes(3)
    page = look(f"runs/roc-0/episodes/train-3-{next(at for at, one in enumerate(entries) if one.kept)}?tab=tokens")
    page.locator(".tokens .token").nth(5).click()
    expect(page.locator(".token-detail")).to_contain_text("log-probability")
    page.get_by_text("Prompt,").click()
    return page


def as_written(look, runs):
    """The line of an episode as it was written."""
    page = look("runs/roc-0/episodes/train-3-1?tab=raw")
    expect(page.locator("main pre").first).to_contain_text('"messages"')
    return page


def open_filters(look, runs):
    """The table of episodes with all its filters, some of which are on."""
    page = look("runs/roc-0/episodes?split=train&kept=0")
    page.get_by_role("button", name="More filters").click()
    expect(page.get_by_label("Drop reason")).to_be_visible()
    return page


def columns_chosen(look, runs):
    """The table of episodes with columns that were chosen, more than fit, and the panel in which one chooses them."""
    page = look(
        "runs/roc-0/episodes?columns=kept,key,errors,answer,step,seconds,question,last_status,problem_id,version"
    )
    page.locator("summary", has_text="Columns").click()
    expect(page.get_by_role("button", name="Reset columns")).to_be_visible()
    return page


def help_dialog(look, runs):
    """The keyboard's keys over a table."""
    page = look("runs/roc-0/episodes")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    return page


def data_of_a_plot(look, runs):
    """The table below a plot of two runs, zoomed and smoothed, with a line that is off."""
    page = look("overview?runs=roc-0,roc-1,grpo-0&from=2&to=6&smooth=0.4&logy=1")
    card = page.get_by_role("region", name="Success", exact=True)
    card.get_by_role("button", name="grpo-0").click()
    card.get_by_text("Data of").click()
    expect(card.locator("tbody tr").first).to_be_visible()
    return page


def reasons_explained(look, runs):
    """The groups with what the reasons mean."""
    page = look("runs/roc-0/groups?rejected=1")
    page.get_by_text("Explanation of the reasons").click()
    return page


def columns_of_groups(look, runs):
    """The groups with the panel in which one chooses columns."""
    page = look("runs/roc-0/groups")
    page.locator("summary", has_text="Columns").click()
    expect(page.get_by_role("button", name="Reset columns")).to_be_visible()
    return page


def unfolded(look, runs):
    """The sampler with its states in checkpoints."""
    page = look("runs/curriculum/sampler")
    for summary in page.locator("details.further > summary").all():
        summary.click()
    expect(page.locator("main figure.code").first).to_be_visible()
    return page


STATES = (
    *(tokens, as_written, open_filters, columns_chosen, columns_of_groups, help_dialog, data_of_a_plot),
    *(reasons_explained, unfolded),
)


def found_in(page, looks):
    """What is wrong with a page, by width and colours."""
    found = {}
    for width, scheme in looks:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("main h1").count() == 1, "a view says what it is"
        if barred := barriers(page):
            found[f"{width} {scheme}"] = barred
    return found


# Each run looks at a wide light page and a narrow dark one, and the proofs at the other two.
@pytest.mark.parametrize("looks", [ENDS, pytest.param(OTHERS, marks=pytest.mark.proof)], ids=["ends", "others"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_has_no_barrier_and_fits_its_window(look, view, looks):
    assert found_in(look(view), looks) == {}


@pytest.mark.parametrize("looks", [ENDS, pytest.param(OTHERS, marks=pytest.mark.proof)], ids=["ends", "others"])
@pytest.mark.parametrize("opened", STATES, ids=lambda state: state.__name__)
def test_what_is_opened_on_a_view_has_no_barrier_either(look, runs, opened, looks):
    assert found_in(opened(look, runs), looks) == {}


def test_a_narrow_page_shows_the_current_part_and_breaks_no_word(look):
    page = look("runs/roc-0/events", width=390)
    parts = page.get_by_role("navigation", name="Parts of the run")
    expect(parts.get_by_role("link", name="Events")).to_be_in_viewport(ratio=1)
    expect(parts.get_by_role("link", name="Overview")).not_to_be_in_viewport(ratio=1)
    details = page.locator("tbody td:last-child").evaluate_all("cells => cells.map((cell) => cell.offsetWidth)")
    assert min(details) > 200
    page = look("runs/roc-0/groups/3/0", width=390)
    chips = page.locator(".group-table .chip").evaluate_all("nodes => nodes.map((node) => node.offsetHeight)")
    assert max(chips) < 30, "each chip is one line"


@pytest.fixture(scope="module")
def exported(runs, tmp_path_factory):
    """All runs as one file."""
    base = tmp_path_factory.mktemp("export")
    write_export([runs], base / "page.html", episodes=5000, cache=base / "cache")
    return base / "page.html"


# An export is the same page with its data inside: each run looks at a fifth of the views, and the proof at all of them.
@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [
        pytest.param(view, id=name, marks=[pytest.mark.proof] if number % 5 else [])
        for number, (name, view) in enumerate(VIEWS.items())
        if name != "two steps"
    ],
)
def test_an_exported_view_has_no_barrier_either(from_disk, exported, view):
    page = from_disk(exported, view)
    expect(page.locator("main [role=alert]")).to_have_count(0)
    assert found_in(page, ENDS) == {}


def test_what_is_not_there_is_said_and_leads_back(look, pages):
    pages.expected.append("404")
    page = look("runs/no-such-run")
    assert "'no-such-run'" in page.locator("[role=alert]").inner_text()
    page = look("no/such/view")
    assert "There is no view" in page.locator("[role=alert]").inner_text()
    page.get_by_role("link", name="rstar2 view").click()
    page.locator(".run-name").first.wait_for()
