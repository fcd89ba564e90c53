"""Options of the sandbox server, and their checks."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rstar2_env.core.command.running_command import named_in
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.secret import SHOWN, Secret, secret_of
from rstar2_env.sandbox.limits import CEILING, Limits


@dataclass(frozen=True)
class ServeOptions(CheckedOptions):
    """Address, limits and timeouts of the sandbox server.

    Attributes:
        host: Address to listen on.
        port: Port to listen on; 0 chooses a free port.
        token: Token that clients must send; ``None`` requires none, which is allowed only on loopback addresses.
        queue: Largest number of waiting calls; further calls are refused with HTTP status 429.
        slots: Number of programs that the provider runs concurrently, as reported to clients; ``None`` uses the number
            from the provider, or the number of cores.
        in_flight: Largest number of calls passed to the provider at the same time; ``None`` means twice ``slots``, so
            that the next program is ready when one ends.
        max_limits: Upper bounds of the limits of a call; higher limits are lowered to these, and the client is
            notified.
        judge_limits: Limits of calls through the code-judge API, whose requests cannot specify limits.
        max_request_mb: Largest size of a request in MiB.
        max_calls: Largest number of calls in a request.
        max_answer_mb: Largest size in MiB of the outcomes that the server holds for a client that does not read its
            answer. Further outcomes are replaced by a message.
        connections: Largest number of connections. Beyond it, a new connection replaces the oldest connection without a
            complete request; if there is none, the new connection is closed.
        header_timeout_s: Seconds within which a client must send the header of a request; after that, its connection is
            closed.
        drain_timeout_s: Seconds within which calls in flight must finish after the server receives a signal to stop.
        orphan_timeout_s: Seconds after which a call whose client disconnected is ended; until then the client can
            reconnect.
        remember_s: Seconds for which the id of a finished call is remembered, so that the call never runs twice.
        remember_mb: Largest total size of the outcomes kept for ``remember_s``, in MiB; beyond it, only the ids of the
            oldest calls are kept.
        beat_s: Seconds between two heartbeats in an answer that is otherwise silent.
        tls_cert: Certificate file, for HTTPS.
        tls_key: Private key file of the certificate.
    """

    host: str = option("127.0.0.1", least=1)
    port: int = option(8700, least=0, most=65535)
    token: str | Secret | None = field(default=None, repr=False)
    queue: int = option(1024, least=1)
    slots: int | None = option(None, least=1)
    in_flight: int | None = option(None, least=1)
    max_limits: Limits = CEILING
    judge_limits: Limits = field(default_factory=lambda: Limits(wall_s=10.0))
    max_request_mb: float = option(64.0, above=0)
    max_calls: int = option(16_384, least=1)
    max_answer_mb: float = option(1024.0, above=0)
    connections: int = option(4096, least=1)
    header_timeout_s: float = option(10.0, above=0, unit="seconds")
    drain_timeout_s: float = option(30.0, least=0, unit="seconds")
    orphan_timeout_s: float = option(5.0, least=0, unit="seconds")
    remember_s: float = option(180.0, above=0, unit="seconds")
    remember_mb: float = option(64.0, above=0)
    beat_s: float = option(2.0, above=0, unit="seconds")
    tls_cert: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of range, or the server would be open to other machines.
        """
        super().__post_init__()
        if self.token in ("", SHOWN):
            raise ConfigurationError(
                f"The token is empty, or it is {SHOWN}, the placeholder that saved options contain instead of a token: "
                "give the token itself, or omit the option.",
                option="token",
            )
        object.__setattr__(self, "token", secret := secret_of(self.token))
        token = secret.reveal() if secret is not None else "0" * 8
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigurationError(
                "The token must contain only printable ASCII characters without spaces, because it is sent "
                "in an HTTP header."
            )
        if len(token) < 8:
            raise ConfigurationError("The token must have at least 8 characters; `openssl rand -hex 32` generates one.")
        if self.token is None and not is_loopback(self.host):
            raise ConfigurationError(
                f"{self.host!r} can be reached from other machines, and without a token anyone there could run "
                "programs. Set a token with --token-file or RSTAR2_SANDBOX_TOKEN, or listen on 127.0.0.1."
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            cert, key = (named_in("serve", f"--tls-{name}", f"tls_{name}") for name in ("cert", "key"))
            raise ConfigurationError(f"HTTPS needs both a certificate ({cert}) and its key ({key}).")


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a host name; it is not resolved here
        return False


def cut_to(limits: Limits, most: Limits) -> tuple[Limits, list[str]]:
    """Reduce each limit to at most its value in ``most``; return the limits, and the names of the reduced limits."""
    cut: dict[str, Any] = {}
    for item in fields(Limits):
        asked, bound = getattr(limits, item.name), getattr(most, item.name)
        if asked is not None and bound is not None and asked > bound:
            cut[item.name] = bound
    return (replace(limits, **cut) if cut else limits), list(cut)
