"""Creates a transport (a way to send weights to servers) by name."""

from __future__ import annotations

from collections.abc import Callable

from rstar2_env.core.errors import UnknownNameError
from rstar2_env.rollout.engines.weight_transports.adapter import AdapterTransport
from rstar2_env.rollout.engines.weight_transports.base import Transport
from rstar2_env.rollout.engines.weight_transports.folder import FolderTransport
from rstar2_env.rollout.engines.weight_transports.group import GroupTransport
from rstar2_env.rollout.engines.weight_transports.settings import TransportSettings

_TRANSPORTS: dict[str, Callable[[TransportSettings], Transport]] = {
    "folder": FolderTransport,
    "group": GroupTransport,
    "adapter": AdapterTransport,
}


def make_transport(name: str, setting: TransportSettings) -> Transport:
    """Create a transport by name.

    Args:
        name: ``folder``, ``group`` or ``adapter``.
        setting: Settings of the engine.

    Raises:
        UnknownNameError: No transport has that name.
        ConfigurationError: The settings lack an option that the transport needs.
    """
    if name not in _TRANSPORTS:
        raise UnknownNameError("transport", name, sorted(_TRANSPORTS))
    return _TRANSPORTS[name](setting)
