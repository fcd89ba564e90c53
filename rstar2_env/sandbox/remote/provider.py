"""``RemoteSandbox``: the sandbox of the provider ``remote``, which uses servers with given addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.core.secret import secret_of
from rstar2_env.sandbox.base import warn_caller
from rstar2_env.sandbox.fleet.client import FleetSandbox
from rstar2_env.sandbox.fleet.link import Link, LinkError
from rstar2_env.sandbox.fleet.servers import FleetServers
from rstar2_env.sandbox.job import Capability
from rstar2_env.sandbox.remote.options import RemoteOptions

if TYPE_CHECKING:
    import httpx


class RemoteSandbox(FleetSandbox):
    """Runs Python programs on sandbox servers (``rstar2 sandbox serve``). Safe to call from any thread.

    Args:
        **options: See ``RemoteOptions``.

    Raises:
        ConfigurationError: An option is invalid.
        SandboxUnavailableError: No server answers, or no server provides the requested isolation.
    """

    options: RemoteOptions
    unisolated = None  # with "none", the isolation of the servers is not checked
    lacking = "The sandbox servers run without isolation layers that their machines do not provide"
    thread_name = "rstar2-sandbox-remote"

    def __init__(self, **options: Any) -> None:
        given = RemoteOptions.from_mapping(options)
        super().__init__(given, token=secret_of(given.token), ca_file=given.ca_file)
        self._connect()
        self._started()

    def capabilities(self) -> Sequence[Capability]:
        """Return each layer of isolation; a layer is active if all servers that are up have it."""
        merged: dict[str, Capability] = {}
        for link in list(self._dispatcher.servers.links) if self._dispatcher is not None else ():
            for layer in link.layers if link.up else ():
                if layer.name not in merged or not layer.active:
                    merged[layer.name] = layer
        return tuple(merged.values())

    @asynccontextmanager
    async def _serving(self, servers: FleetServers, http: httpx.AsyncClient) -> AsyncIterator[None]:
        servers.links += [Link(url, http, strict=self.options.isolation == "strict") for url in self.options.urls]
        try:
            await servers.start(self.options.start_timeout_s)
        except LinkError as error:
            raise SandboxUnavailableError(f"None of the sandbox servers can be used: {error}") from None
        yield

    def _warn_of_gaps(self) -> None:
        """Warn about missing layers, and about limits that a server would lower."""
        super()._warn_of_gaps()
        assert self._dispatcher is not None  # it has started
        for link in list(self._dispatcher.servers.links):
            cut = [
                f"{name} {bound:g}"
                for name, bound in link.max_limits.items()
                if bound is not None and (getattr(self.options.limits, name, None) or 0) > bound
            ]
            if cut:
                warn_caller(
                    f"The sandbox server {link.name} allows smaller limits than requested, and uses its own: "
                    f"{', '.join(cut)}."
                )
