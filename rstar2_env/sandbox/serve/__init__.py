"""The sandbox as a service, started by ``rstar2 sandbox serve``.

Covered: ``service`` (a bounded queue of calls by id; each call runs once), ``app`` (its HTTP interface), ``stream``
(outcomes as they finish), ``guard`` (authentication and request size), ``code_judge`` (the API of code-judge),
``metrics``, ``options``, ``main`` (the process). Not covered: running programs (any provider) and the client
(``rstar2_env.sandbox.remote``).
"""
