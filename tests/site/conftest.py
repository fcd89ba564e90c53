"""The built site, and a browser without a network. ``make docs-test`` builds it first; no other run looks in here."""

import os

import pytest
from chromium import FLAGS, PATH, PATIENCE_MS, missing
from places import ROOT

collect_ignore_glob = [] if os.environ.get("RSTAR2_SITE") else ["test_*.py"]

SITE = ROOT / "build" / "site"
_HOW = "the site is not built: run `make docs-test`"


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium."""
    if why := missing():
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=PATH, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture
def look(browser):
    """Opens pages of the site as files: ``look("index.html", width=390, dark=True)``. All that they load is local."""
    if not (SITE / "index.html").exists():
        pytest.fail(_HOW)
    contexts, asked, failed = [], [], []

    def open_page(place, *, width=1440, dark=False):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto((SITE / place).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert failed == []
