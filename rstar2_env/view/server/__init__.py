"""The viewer's server: answers as JSON over HTTP, and the page that shows them.

Covered: who may ask, what is served, starting and stopping. Not covered: the answers (``rstar2_env.view.answers``).
"""

from __future__ import annotations

from rstar2_env.view.server.options import ViewOptions
from rstar2_env.view.server.serving import ViewServer

__all__ = ["ViewOptions", "ViewServer"]
