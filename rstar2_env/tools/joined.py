"""Joins the tools of several environments: one environment is active at a time; middleware is added to all tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rstar2_env.tools.base import ToolSpec
from rstar2_env.tools.chain import Middleware


class JoinedChains:
    """The tools of several environments; one environment is active at a time.

    Args:
        owners: The unwrapped environments; an environment without tools is ignored.
    """

    def __init__(self, owners: Sequence[Any]) -> None:
        self._chains = [getattr(owner, "tools", None) for owner in owners]
        self.current = 0

    @property
    def specs(self) -> list[ToolSpec]:
        """The tool schemas of the active environment; empty if it has no tools."""
        chain = self._chains[self.current]
        return [] if chain is None else list(chain.specs)

    def use(self, middleware: Middleware) -> None:
        """Add a middleware to the tools of every environment."""
        for chain in filter(None, self._chains):
            chain.use(middleware)

    def remove(self, middleware: Middleware) -> None:
        """Remove a middleware from the tools of every environment."""
        for chain in filter(None, self._chains):
            chain.remove(middleware)
