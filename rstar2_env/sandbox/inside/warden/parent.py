"""``Parent``: the warden's record of a parent process, which forks the processes that run programs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parent_link import ParentLink


class Parent:
    """The warden's record of a parent process, which the zygote forks, and which forks a child for each program.

    Args:
        names: The modules of ``preload`` that the parent imports, in order.
        link: The connection to the parent.
    """

    def __init__(self, names: tuple[str, ...], link: ParentLink) -> None:
        self.names = names
        self.link = link
        self.ready = self.retiring = False
        self.made_at = self.used_at = time.monotonic()
        self.preparing = self.children = 0
        self.use = 0.0  # weight of its recent calls, relative to other parents
