"""A run that a hostile model wrote, and a crash broke: all of it is shown as text, nothing of it runs."""

from __future__ import annotations

import json

import pytest
from chromium import settle
from hostile_run import NAMES, TEXTS, write_hostile
from playwright.sync_api import expect


@pytest.fixture
def hostile(serve, tmp_path):
    """The run, and a server over it."""
    made = write_hostile(tmp_path)
    return made, serve([made.folder])


@pytest.fixture
def see(hostile, pages):
    """Opens a view of the hostile run: ``see("episodes")``."""
    _, server = hostile
    run = server.answers.runs()["runs"][0]["run"]

    def open_view(view="", **options):
        return pages.open(f"{server.link}#/runs/{run}/{view}", **options)

    return open_view


def test_what_can_be_read_is_there_and_what_cannot_is_told(hostile, see):
    made, _ = hostile
    page = see("episodes")
    grid = page.get_by_role("grid", name="Episodes")
    expect(grid).to_have_attribute("aria-rowcount", str(made.train + made.held_out + 1))
    notes = page.locator(".notes")
    for name in made.broken:
        expect(notes).to_contain_text(name)


def test_a_text_is_shown_as_it_was_written_and_does_nothing(see):
    page = see("episodes")
    start = page.url
    for number, name in enumerate(TEXTS):
        go(page, f"{start}/train-1-{2 * number}")
        told = page.get_by_role("list", name="Conversation")
        expect(told, name).to_contain_text(f"{name}:")
        assert_text_alone(page, name)
    go(page, f"{start}/train-1-0?tab=raw")
    expect(page.locator("main pre")).to_contain_text(json.dumps(TEXTS["script"])[1:-1])
    assert_text_alone(page, "as written")


def go(page, address):
    """Follow a link inside the page."""
    page.evaluate("address => { location.href = address; }", address)
    settle(page)


def assert_text_alone(page, what):
    """Nothing that was written is an element, an address or a handler."""
    bad = "script, iframe, object, embed, base, style, form:not([role=search]), img, link, meta, [src], [onerror]"
    assert page.locator(f"main :is({bad})").count() == 0, what
    links = page.locator("main a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    assert [link for link in links if not link.startswith("#/")] == [], what


def test_the_same_texts_in_lists_and_other_views_do_nothing(see):
    page = see()
    run = page.url.rstrip("/")
    views = ("", "/episodes", "/groups", "/groups/1/0", "/groups/2/0", "/sampler", "/problems", "/recipe", "/events")
    for view in views:
        go(page, run + view)
        assert page.locator("main").inner_text(), view
        assert_text_alone(page, view)


def test_names_that_mean_something_to_the_page_are_names_of_problems(see):
    page = see("problems?split=train")
    grid = page.get_by_role("grid", name="Problems")
    for name in (name for name in NAMES if name.strip()):
        page.get_by_role("searchbox").fill(name)
        page.wait_for_function("name => new URLSearchParams(location.hash.split('?')[1]).get('q') === name", arg=name)
        row = grid.locator(".table-body [role=row]", has_text=name).first
        expect(row).to_be_visible()
        row.locator("a").click()
        expect(page.locator("h2", has_text=name).first).to_be_visible()
        assert page.get_by_role("region", name="Episodes of the problem").locator("tbody tr").count() >= 1
        page.go_back()
        expect(grid).to_be_visible()


def test_a_message_of_a_megabyte_and_deep_nesting_are_opened(see):
    page = see("episodes/train-3-0")
    told = page.get_by_role("list", name="Conversation")
    assert len(told.inner_text()) < 50_000, "long texts are cut until the reader asks"
    page = see("episodes/train-3-1?tab=raw")
    expect(page.locator("main pre").first).to_be_visible()
