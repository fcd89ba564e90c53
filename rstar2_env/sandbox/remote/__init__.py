"""The ``remote`` provider: a fleet of servers with given addresses, each started with ``rstar2 sandbox serve``.

Covered: ``provider`` (the sandbox), ``options``. Not covered: sending calls (``rstar2_env.sandbox.fleet``), the server
(``rstar2_env.sandbox.serve``).
"""

from __future__ import annotations

from rstar2_env.sandbox.remote.options import RemoteOptions
from rstar2_env.sandbox.remote.provider import RemoteSandbox

__all__ = ["RemoteOptions", "RemoteSandbox"]
