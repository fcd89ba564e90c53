"""Draws the pictures of docs/pictures/site: ``python tests/support/site_pictures.py [NAME ...]``.

They show the site in ``build/site``, and are to be looked at before it is published. ``make docs-test`` builds it with
what the tutorials print.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chromium import Watched
from pictures import Picture, main, take
from PIL import Image
from places import DOCS, ROOT

SITE = ROOT / "build" / "site"
OUT = DOCS / "pictures" / "site"
MOST_BYTES_OF_ALL = 600_000

_COLOURS = 96
_SEARCH = "index.html?q=resample+on+correct"
_TUTORIAL = "tutorials/own_environment.html"
_GALLERY = "environments.html"
_METRICS = "metrics.html#policy"
PICTURES = {
    "front": Picture("index.html", height=900),
    "front-dark": Picture("index.html", dark=True, height=900),
    "front-narrow": Picture("index.html", 390, height=900),
    "search": Picture(_SEARCH),
    "search-narrow-dark": Picture(_SEARCH, 390, dark=True, height=900),
    "tutorial": Picture(f"{_TUTORIAL}#a-turn-with-a-call-a-wrong-call-an-answer", height=900),
    "tutorial-narrow-dark": Picture(_TUTORIAL, 390, dark=True, height=900),
    "gallery": Picture(_GALLERY),
    "gallery-narrow": Picture(_GALLERY, 390, height=900),
    "metrics": Picture(_METRICS, height=900),
    "metrics-narrow": Picture(_METRICS, 390, height=900),
    "statuses-dark": Picture("gallery/statuses.html", dark=True),
}
"""The pictures, by name; a view is a page of the site, with what to search for after ``?q=``."""


def draw(browser: Any, chosen: Sequence[str], out: Path) -> None:
    """Look at pages of the site, and write pictures.

    Args:
        browser: Playwright's browser.
        chosen: Names of pictures.
        out: Folder of the pictures.
    """
    pages = Watched(browser)
    for name in chosen:
        picture = PICTURES[name]
        address = f"{SITE.as_uri()}/{picture.view}"
        page = pages.open(address, width=picture.width, height=picture.height, dark=picture.dark)
        if "?q=" in picture.view:
            page.locator(".md-search-result__item").first.wait_for()
        take(page, picture, out / f"{name}.png")
        _pack(out / f"{name}.png")
    pages.close()


def _pack(file: Path) -> None:
    """Keep as many colours as a page of text needs: a third of the bytes."""
    with Image.open(file) as picture:
        packed = picture.convert("RGB").quantize(_COLOURS, kmeans=2, dither=Image.Dither.NONE)
    packed.save(file, optimize=True)


if __name__ == "__main__":
    main(draw, PICTURES, OUT)
