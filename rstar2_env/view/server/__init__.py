"""The viewer's server: sends the results of queries as JSON over HTTP, and the page that displays them.

Covered: access control, routes, starting and stopping. Not covered: the queries (``rstar2_env.view.answers``).
"""

from __future__ import annotations

from rstar2_env.view.server.options import ViewOptions
from rstar2_env.view.server.serving import ViewServer

__all__ = ["ViewOptions", "ViewServer"]
