"""Debian's Chromium for tests of pages, one for all tests of a folder, and pages that must not do what they must not.

Playwright's event loop counts as running in its thread for as long as the browser lives, so that nothing else there
could call ``asyncio.run``: the folder's conftest closes it before a test of another folder begins (``close``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hostile_run import MARK

PATH = os.environ.get("RSTAR2_CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 120_000
"""How long a page may take to show something, on a busy machine."""
_WATCH = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""


def missing() -> str:
    """Why there is no browser; "" where there is one."""
    if not os.path.exists(PATH):
        return f"there is no {PATH} (apt install chromium)"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "Playwright is not installed (pip install playwright)"
    return ""


class Chromium:
    """The browser, started when it is first needed."""

    def __init__(self) -> None:
        self._playwright: Any = None
        self._browser: Any = None

    @property
    def browser(self) -> Any:
        """Playwright's browser."""
        if self._browser is None:
            from playwright.sync_api import expect, sync_playwright

            expect.set_options(timeout=PATIENCE_MS)
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(executable_path=PATH, args=list(FLAGS))
        return self._browser

    def close(self) -> None:
        """End it; it may be started again."""
        if self._browser is not None:
            self._browser.close()
            self._playwright.stop()
            self._browser = self._playwright = None


@dataclass
class Watched:
    """Pages of one test, and what they did.

    Attributes:
        opened: The pages.
        asked: Addresses that they asked for.
        said: Errors of their consoles and scripts.
        expected: Parts of errors that a test expects.
    """

    browser: Any
    opened: list[Any] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def open(self, address: str, *, width: int = 1440, height: int = 900, dark: bool = False, **options: Any) -> Any:
        """Open a page in a context of its own, and wait until it shows something.

        Args:
            address: Where it is.
            width: Of the window, in pixels.
            height: Likewise.
            dark: Whether the reader prefers dark colours.
            **options: Of the context.
        """
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            **options,
        )
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(_WATCH)
        page = context.new_page()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: message.type == "error" and self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        self.opened.append(page)
        page.goto(address)
        settle(page)
        return page

    def check(self, here: Callable[[str], bool]) -> None:
        """Check what the pages did.

        Args:
            here: Whether an address is one that they may ask for.
        """
        violations = [one for page in self.opened for one in page.evaluate("window.__violations")]
        ran = [page.evaluate(f"'{MARK}' in window || 'polluted' in {{}}") for page in self.opened]
        assert [url for url in self.asked if not url.startswith("data:") and not here(url)] == []
        assert [one for one in self.said if not any(part in one for part in self.expected)] == []
        assert violations == [], "the page broke its own content security policy"
        assert not any(ran), "something that the run holds was executed"

    def close(self) -> None:
        """Close the pages."""
        for page in self.opened:
            page.context.close()


@contextmanager
def watched(browser: Any, here: Callable[[str], bool]) -> Iterator[Watched]:
    """Pages that are checked when the test is over, and closed."""
    pages = Watched(browser)
    try:
        yield pages
        pages.check(here)
    finally:
        pages.close()


def settle(page: Any) -> None:
    """Wait until the page shows what it loads. (Not by a function in the page: its policy forbids ``eval``.)"""
    from playwright.sync_api import expect

    page.locator("main, .state").first.wait_for()
    expect(page.locator(".spinner")).to_have_count(0)


def barriers(page: Any) -> list[tuple[str, list[str]]]:
    """What axe finds in the page as it is: rule and elements."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found]
