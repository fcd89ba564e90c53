"""The sandbox as a service over HTTP, started by ``rstar2 sandbox serve``.

Modules: ``service`` (a queue of limited length, in which each call has an id and runs once), ``app`` (the HTTP
interface), ``stream`` (outcomes as they finish), ``guard`` (authentication and request size), ``code_judge`` (the API
of code-judge), ``metrics``, ``options``, ``main`` (the process). Not covered: how programs run (any provider), and the
client (``rstar2_env.sandbox.remote``).
"""
