"""The sandbox provider ``remote``: servers with given addresses, each started with ``rstar2 sandbox serve``.

Modules: ``provider`` (the sandbox), ``options``. Not covered: how calls are sent (``rstar2_env.sandbox.fleet``), and
the server (``rstar2_env.sandbox.serve``).
"""
