"""Runs walked in a terminal as a user does: keys go in, and the lines on the screen are read back."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from html import unescape
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from rstar2_env.view.following import Follower
from rstar2_env.view.library import Library
from rstar2_env.view.terminal.walk.app import Walk
from rstar2_env.view.terminal.walk.lines import Lines
from rstar2_env.view.terminal.walk.rows import RowTable

PATIENCE_S = 120.0
_PART = re.compile(r'<text[^>]* x="([\d.]+)"[^>]*clip-path="url\(#[^"]*-line-(\d+)\)"[^>]*>([^<]*)</text>')
"""A part of a line of the terminal in the picture that textual makes of it, which leaves out what is blank."""
_WIDTH = 12.2
"""Of a character in that picture."""


class Walker:
    """Somebody who walks.

    Attributes:
        app: The program.
    """

    def __init__(self, app: Walk, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def lines(self) -> list[str]:
        """The lines on the screen, without colours."""
        found: dict[int, str] = {}
        for x, number, part in _PART.findall(self.app.export_screenshot()):
            before = found.get(int(number), "").ljust(round(float(x) / _WIDTH))
            found[int(number)] = before + unescape(part).replace("\xa0", " ").replace("\n", "")
        return [found.get(number, "") for number in range(max(found, default=-1) + 1)]

    @property
    def text(self) -> str:
        """The same as one text."""
        return "\n".join(self.lines)

    @property
    def table(self) -> RowTable:
        """The table of the screen."""
        return self.app.screen.query_one(RowTable)

    @property
    def whole(self) -> str:
        """All lines that the screen can be scrolled to."""
        return "\n".join(line.text for line in self.app.screen.query_one(Lines).lines)

    def keys(self) -> list[str]:
        """The keys of the episodes that are in view, by their rows."""
        return re.findall(r"^ ((?:train|eval)-\d+-\d+)", self.text, re.MULTILINE)

    async def until(self, seen: str | Callable[[], bool]) -> None:
        """Wait until the screen shows a text, or something is so."""
        holds = seen if callable(seen) else lambda: seen in self.text
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, f"waited for {seen!r}, and this is there:\n{self.text}"
            await self.pilot.pause(0.05)

    async def press(self, *keys: str, until: str | Callable[[], bool] = "") -> None:
        """Press keys, and wait for what follows."""
        await self.pilot.press(*keys)
        await self.until(until)

    async def type(self, text: str) -> None:
        """Type a line."""
        for letter in text:
            await self.pilot.press(letter)


def walk(
    act: Callable[[Walker], Awaitable[object]], *roots: Path, cache: Path, size: tuple[int, int] = (80, 24)
) -> Walk:
    """Walk runs; the program ends when the act is over.

    Args:
        act: What to do.
        *roots: The runs.
        cache: Folder of indexes.
        size: Columns and lines of the terminal.
    """
    library = Library(roots, cache)
    follower = Follower(library)
    app = Walk(follower)

    async def acted() -> Any:
        async with app.run_test(size=size) as pilot:
            await act(Walker(app, pilot))

    follower.start()
    try:
        asyncio.run(acted())
    finally:
        follower.close()
        library.close()
    return app
