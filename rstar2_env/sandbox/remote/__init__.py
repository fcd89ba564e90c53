"""The ``remote`` provider: the client of ``rstar2 sandbox serve``.

Covered: ``client`` (the sandbox), ``dispatch`` (sending calls and handling failures), ``balance`` (how many calls go
where), ``homes`` (sessions), ``link`` (one server as the client sees it), ``codec`` (jobs and outcomes as JSON, shared
with the server), ``options``. Not covered: the server (``rstar2_env.sandbox.serve``).
"""

from __future__ import annotations

from rstar2_env.sandbox.remote.client import RemoteSandbox
from rstar2_env.sandbox.remote.options import RemoteOptions

__all__ = ["RemoteOptions", "RemoteSandbox"]
