"""The sandbox provider ``remote``: servers with given addresses, each started with ``rstar2 sandbox serve``.

Covered: ``provider`` (the sandbox), ``options``. Not covered: sending calls (``rstar2_env.sandbox.fleet``), the server
(``rstar2_env.sandbox.serve``).
"""
