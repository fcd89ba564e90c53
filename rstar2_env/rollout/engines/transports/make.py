"""Transports by name."""

from __future__ import annotations

from collections.abc import Callable

from rstar2_env.core.errors import UnknownNameError
from rstar2_env.rollout.engines.transports.adapter import AdapterTransport
from rstar2_env.rollout.engines.transports.base import Transport, TransportSettings
from rstar2_env.rollout.engines.transports.folder import FolderTransport
from rstar2_env.rollout.engines.transports.group import GroupTransport

_TRANSPORTS: dict[str, Callable[[TransportSettings], Transport]] = {
    "folder": FolderTransport,
    "group": GroupTransport,
    "adapter": AdapterTransport,
}


def make_transport(name: str, setting: TransportSettings) -> Transport:
    """Return a new transport.

    Args:
        name: ``folder``, ``group`` or ``adapter``.
        setting: What the engine says.

    Raises:
        UnknownNameError: There is no transport of that name.
        ConfigurationError: It lacks an option.
    """
    if name not in _TRANSPORTS:
        raise UnknownNameError("transport", name, sorted(_TRANSPORTS))
    return _TRANSPORTS[name](setting)
