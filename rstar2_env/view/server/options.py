"""``ViewOptions``: the options of the viewer's server."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Self

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.secret import Secret, secret_of
from rstar2_env.sandbox.serve.options import is_loopback


@dataclass(frozen=True)
class ViewOptions(CheckedOptions):
    """Address and limits of the viewer's server.

    Attributes:
        host: Address to listen on. A token is required if other machines can reach it.
        port: Port to listen on; 0 chooses a free port.
        token: Token that a browser must send once, as a part of the link; ``None`` requires no token, which is allowed
            only on loopback.
        names: Additional host names of this machine, accepted in the Host header.
        connections: Maximum number of concurrent connections; further connections are closed.
        header_timeout_s: Seconds within which a client must send the header of a request.
        poll_s: Maximum seconds that a long-polling request waits for changes.
    """

    host: str = option("127.0.0.1", least=1)
    port: int = option(8800, least=0, most=65535)
    token: str | Secret | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()
    connections: int = option(256, least=1)
    header_timeout_s: float = option(10.0, above=0, unit="seconds")
    poll_s: float = option(20.0, above=0, unit="seconds")

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of its range, or the server would be open to other machines.
        """
        super().__post_init__()
        object.__setattr__(self, "token", secret := secret_of(self.token))
        token = secret.reveal() if secret is not None else "0" * 16
        if len(token) < 16 or not token.isascii() or not token.isalnum():
            raise ConfigurationError(
                "The token must consist of at least 16 letters and digits, because it is part of a link."
            )
        if self.token is None and not is_loopback(self.host):
            raise ConfigurationError(
                f"The address {self.host!r} can be reached from other machines, so a token is required: set "
                "one, or listen on 127.0.0.1."
            )

    @classmethod
    def create(cls, host: str, port: int, *, token: bool = False, names: tuple[str, ...] = ()) -> Self:
        """Create options, with a random token if the address or the user requires one.

        Args:
            host: Address to listen on.
            port: Port to listen on.
            token: Whether a token is required on loopback too.
            names: Additional host names of this machine.
        """
        made = Secret(secrets.token_hex(24)) if token or not is_loopback(host) else None
        return cls(host=host, port=port, token=made, names=names)
