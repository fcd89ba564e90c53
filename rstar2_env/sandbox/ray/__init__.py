"""The sandbox provider ``ray``: one sandbox server on every node of a Ray cluster.

    with make_sandbox("ray", address="auto") as sandbox:
        outcomes = sandbox.run_many(jobs)

``provider`` contains the sandbox, ``nodes`` starts a server on every node and reports lost servers to the fleet,
``keeper`` is the actor that runs a server. Not covered: sending calls (``rstar2_env.sandbox.fleet``). Importing this
package does not need Ray; making a sandbox does (extra ``ray``).
"""
