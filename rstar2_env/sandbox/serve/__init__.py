"""The sandbox as a service: what ``rstar2 sandbox serve`` runs.

Covered: ``service`` (the bounded queue, calls by id, each run once), ``app`` (its HTTP interface), ``stream`` (outcomes
as they finish), ``guard`` (authentication and request size), ``code_judge`` (the interface of code-judge), ``metrics``,
``options``, ``main`` (the process). Not covered: running programs (any provider) and the client
(``rstar2_env.sandbox.remote``).
"""

from __future__ import annotations

from rstar2_env.sandbox.serve.options import ServeOptions

__all__ = ["ServeOptions"]
