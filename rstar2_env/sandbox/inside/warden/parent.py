"""A parent as the warden sees it. Which there are, and how they come and go, is in ``parents``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parent_link import ParentLink


class Parent:
    """One parent of children, which the zygote makes.

    Args:
        names: The modules of ``preload`` that it imports, in their order.
        link: The way to it.
    """

    __slots__ = ("children", "grown", "link", "made_at", "names", "preparing", "retiring", "use", "used_at")

    def __init__(self, names: tuple[str, ...], link: ParentLink) -> None:
        self.names = names
        self.link = link
        self.grown = self.retiring = False
        self.made_at = self.used_at = time.monotonic()
        self.preparing = self.children = 0
        self.use = 0.0  # its share of recent calls, beside the others'
