"""What programs that draw pictures of pages share: what a picture shows, how it is taken, and how large it is."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chromium import Chromium

MOST_BYTES = 300_000
_TO = "(node, above) => window.scrollBy(0, node.getBoundingClientRect().top - above)"
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
_UNDER_A_HEADER = 72


@dataclass(frozen=True)
class Picture:
    """A view to draw.

    Attributes:
        view: Its address, as the program that draws it reads it.
        width: Of the window, in pixels.
        dark: Whether the page is dark.
        at: The heading to scroll to; empty for the top.
        click: What to click on, as a selector; empty for nothing.
        height: Of the window, in pixels.
        keys: Pressed in a terminal that walks through a run, which is then drawn in place of a page.
    """

    view: str
    width: int = 1440
    dark: bool = False
    at: str = ""
    click: str = ""
    height: int = 720
    keys: tuple[str, ...] = ()


def take(page: Any, picture: Picture, file: Path) -> None:
    """Write the picture of an open page: scrolled to its heading, clicked on, and drawn to the end."""
    if picture.at:
        page.get_by_role("heading", name=picture.at, exact=True).evaluate(_TO, _UNDER_A_HEADER)
    if picture.click:
        page.locator(picture.click).click()
    page.evaluate(_DRAWN)  # plots are drawn when they come into view
    page.screenshot(path=file)


def size_of(file: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    begin = file.read_bytes()[:24]
    assert begin[:8] == b"\x89PNG\r\n\x1a\n", file
    width, height = struct.unpack(">II", begin[16:24])
    return width, height


def check(folder: Path, pictures: Mapping[str, Picture]) -> None:
    """Check that the pictures that are kept are those that are drawn, each of its size and small."""
    files = {file.stem: file for file in folder.iterdir()}
    assert set(files) == set(pictures)
    for name, picture in pictures.items():
        assert size_of(files[name]) == (picture.width, picture.height), name
        assert files[name].stat().st_size < MOST_BYTES, name


def main(draw: Callable[[Any, Sequence[str], Path], None], pictures: Mapping[str, Picture], out: Path) -> None:
    """Draw the pictures that the command line names, or all."""
    out.mkdir(parents=True, exist_ok=True)
    chromium = Chromium()
    try:
        draw(chromium.browser, sys.argv[1:] or list(pictures), out)
    finally:
        chromium.close()
