"""The options of the ``remote`` provider, checked in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, call_with_options, option
from rstar2_env.sandbox.limits import Limits
from rstar2_env.sandbox.options import IsolationMode

_LONGEST_PATIENCE_S = 120.0


@dataclass(frozen=True)
class RemoteOptions(CheckedOptions):
    """How the ``remote`` provider finds its servers, and what it does when they fail.

    Attributes:
        url: Address of the one server; without it and ``urls``, the variable RSTAR2_SANDBOX_URL (several, by commas).
        urls: Addresses of several servers.
        token: Their token; ``None`` takes the variable RSTAR2_SANDBOX_TOKEN. Pickled with the other options.
        batch: Largest number of calls in one request.
        linger_ms: Milliseconds that a call waits for others to share a request with, while every server is busy.
        retries: How many times a call is retried after its server is known to have lost it.
        patience_s: Seconds that a call waits for a server that is down, or for news of a call in flight; then it is
            ``unavailable``. At most 120, since servers remember a call for 180.
        start_s: Seconds within which a server must answer at the start.
        isolation: ``"strict"`` uses no server that lacks a required layer, ``"best"`` warns once, ``"none"`` does not
            check.
        limits: The limits that most jobs will have; a warning at the start says if a server would lower them.
        ca_file: Certificates to trust for HTTPS, instead of the usual ones.
    """

    url: str | None = None
    urls: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)
    batch: int = option(64, least=1)
    linger_ms: float = option(2.0, least=0, unit="milliseconds")
    retries: int = option(1, least=0)
    patience_s: float = option(20.0, above=0, most=_LONGEST_PATIENCE_S, unit="seconds")
    start_s: float = option(10.0, above=0, unit="seconds")
    isolation: IsolationMode = "strict"
    limits: Limits = field(default_factory=Limits)
    ca_file: str | None = None

    def __post_init__(self) -> None:
        """Check every value, and take what is missing from the environment.

        Raises:
            ConfigurationError: A value is out of its range or of the wrong kind, or no server is named.
        """
        super().__post_init__()
        if self.url is not None and self.urls:
            raise ConfigurationError("Give url, or urls for several servers, not both.")
        given = (self.url,) if self.url is not None else tuple(self.urls)
        if not given:
            given = tuple(filter(None, map(str.strip, os.environ.get("RSTAR2_SANDBOX_URL", "").split(","))))
        if not given:
            raise ConfigurationError(
                'The remote sandbox needs the address of a server: url="http://127.0.0.1:8700", urls=[...] or the '
                "variable RSTAR2_SANDBOX_URL. `rstar2 sandbox serve` starts one."
            )
        object.__setattr__(self, "url", None)
        object.__setattr__(self, "urls", tuple(dict.fromkeys(map(_checked, given))))
        if self.token is None:
            object.__setattr__(self, "token", os.environ.get("RSTAR2_SANDBOX_TOKEN", "").strip() or None)
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ConfigurationError("The token must be printable ASCII, since it travels in a header.")
        if self.ca_file is not None and not os.path.exists(self.ca_file):
            raise ConfigurationError(f"ca_file names {self.ca_file!r}, which does not exist.")

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> RemoteOptions:
        """Options from names and values.

        Raises:
            ConfigurationError: There is no option of that name, or its value is wrong.
        """
        return call_with_options("remote sandbox", cls, given)

    def as_given(self) -> dict[str, Any]:
        """The options as a dictionary, from which equal options can be constructed."""
        return {option.name: getattr(self, option.name) for option in fields(self)}


def _checked(url: Any) -> str:
    """An address without a trailing slash.

    Raises:
        ConfigurationError: It is not the address of a server.
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
        _ = parts.port
    except (ValueError, AttributeError, TypeError):
        fits = False
    if not fits:
        raise ConfigurationError(f'The address of a sandbox server looks like "http://127.0.0.1:8700", not {url!r}.')
    if parts.username or parts.password:
        raise ConfigurationError("Give the token as token=, not in the address, which is shown in messages.")
    return str(url).rstrip("/")
