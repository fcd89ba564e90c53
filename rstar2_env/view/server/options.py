"""The options of the viewer's server, checked in one place."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import Self

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.sandbox.serve.options import is_loopback


@dataclass(frozen=True)
class ViewOptions(CheckedOptions):
    """Address and bounds of the server.

    Attributes:
        host: Address to listen on. With one that other machines reach, a token is asked for.
        port: Port to listen on; 0 takes a free one.
        token: What a browser must show once, in the link; ``None`` asks for none, on loopback alone.
        names: Further names that this machine is called by, for the check of the header Host.
        connections: Connections at once; a further one is closed at once.
        header_s: Seconds that a request's header may take.
        poll_s: Longest time that a request for changes is held.
    """

    host: str = option("127.0.0.1", least=1)
    port: int = option(8800, least=0, most=65535)
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()
    connections: int = option(256, least=1)
    header_s: float = option(10.0, above=0, unit="seconds")
    poll_s: float = option(20.0, above=0, unit="seconds")

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of its range, or the server would be open to other machines.
        """
        super().__post_init__()
        if self.token is not None and (len(self.token) < 16 or not self.token.isascii() or not self.token.isalnum()):
            raise ConfigurationError("The token must have at least 16 letters and digits, since it stands in a link.")
        if self.token is None and not is_loopback(self.host):
            raise ConfigurationError(f"{self.host!r} can be reached from other machines: it needs a token.")

    @classmethod
    def of(cls, host: str, port: int, *, token: bool = False, names: tuple[str, ...] = ()) -> Self:
        """Options with a token of their own, where the address or the user asks for one.

        Args:
            host: Address to listen on.
            port: Port to listen on.
            token: Ask for a token on loopback too.
            names: Further names of this machine.
        """
        made = secrets.token_hex(24) if token or not is_loopback(host) else None
        return cls(host=host, port=port, token=made, names=names)

    def at(self, port: int) -> Self:
        """The same with the port that was taken."""
        return replace(self, port=port)
