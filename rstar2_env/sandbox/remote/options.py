"""Options of the provider ``remote``, and their checks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option
from rstar2_env.core.secret import Secret, secret_of
from rstar2_env.sandbox.fleet.options import FleetOptions
from rstar2_env.sandbox.limits import Limits
from rstar2_env.sandbox.options import IsolationMode

_LONGEST_PATIENCE_S = 120.0


@dataclass(frozen=True)
class RemoteOptions(FleetOptions):
    """Options of the provider ``remote``: the addresses of its servers, and the handling of failures.

    Attributes:
        url: Address of the server. If neither ``url`` nor ``urls`` is given, the addresses are read from the
            environment variable RSTAR2_SANDBOX_URL, separated by commas.
        urls: Addresses of several servers.
        token: Token that the servers require; ``None``, which is preferable, reads it from the environment variable
            RSTAR2_SANDBOX_TOKEN. Files that record the options contain ``***`` instead of the token, but the token is
            pickled with the other options.
        retries: How many times a call is retried after it is certain that the server has lost the call.
        reconnect_timeout_s: Seconds that a call waits for a server that is down, or for an answer to a call in flight;
            then the call is ``unavailable``. At most 120, since a server remembers a call for 180 seconds by default.
        start_timeout_s: Seconds within which a server must answer at the start.
        isolation: ``"strict"``, the default, refuses servers that lack a required layer, ``"best"`` warns once,
            ``"none"`` does not check.
        limits: The limits that most jobs have; used only to warn, at the start, about servers that would lower
            them.
        ca_file: File of certificates to trust for HTTPS, instead of the system's certificates.
    """

    provider: ClassVar[str] = "remote"

    url: str | None = None
    urls: tuple[str, ...] = ()
    token: str | Secret | None = field(default=None, repr=False)
    reconnect_timeout_s: float = option(20.0, above=0, most=_LONGEST_PATIENCE_S, unit="seconds")
    start_timeout_s: float = option(10.0, above=0, unit="seconds")
    isolation: IsolationMode = "strict"
    limits: Limits = field(default_factory=Limits)
    ca_file: str | None = None

    def __post_init__(self) -> None:
        """Check every value, and read missing addresses and a missing token from environment variables.

        Raises:
            ConfigurationError: A value is out of range or has the wrong type, or no server is given.
        """
        super().__post_init__()
        if self.url is not None and self.urls:
            raise ConfigurationError(
                "The options url (one server) and urls (several servers) cannot be combined: omit one of them."
            )
        given = (self.url,) if self.url is not None else tuple(self.urls)
        if not given:
            given = tuple(filter(None, map(str.strip, os.environ.get("RSTAR2_SANDBOX_URL", "").split(","))))
        if not given:
            raise ConfigurationError(
                'The remote sandbox requires the address of a server: url="http://127.0.0.1:8700", urls=[...] or the '
                "variable RSTAR2_SANDBOX_URL. `rstar2 sandbox serve` starts one."
            )
        object.__setattr__(self, "url", None)
        object.__setattr__(self, "urls", tuple(dict.fromkeys(map(_checked, given))))
        token = secret_of(self.token) or secret_of(os.environ.get("RSTAR2_SANDBOX_TOKEN", "").strip())
        object.__setattr__(self, "token", token)
        if token is not None and not (token.reveal().isascii() and token.reveal().isprintable()):
            raise ConfigurationError(
                "The token must contain only printable ASCII characters, because it is sent in an HTTP header."
            )
        if self.ca_file is not None and not os.path.exists(self.ca_file):
            raise ConfigurationError(f"The option `ca_file` names {self.ca_file!r}, which does not exist.")


def _checked(url: Any) -> str:
    """Check an address, and remove a trailing slash.

    Raises:
        ConfigurationError: The value is not the address of a server.
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
        _ = parts.port
    except (ValueError, AttributeError, TypeError):
        fits = False
    if not fits:
        raise ConfigurationError(
            f'The address of a sandbox server must have the form "http://127.0.0.1:8700", not {url!r}.'
        )
    if parts.username or parts.password:
        raise ConfigurationError(
            "The address of a sandbox server must not contain the token, because messages contain the "
            "address: pass the token with the option token."
        )
    return str(url).rstrip("/")
