"""The sandbox provider ``ray``: one sandbox server on every node of a Ray cluster.

    with make_sandbox("ray", address="auto") as sandbox:
        outcomes = sandbox.run_many(jobs)

``provider`` contains the sandbox, ``nodes`` starts a server on every node and reports lost servers to the fleet,
``keeper`` contains the actor that runs a server. Not covered: how calls are sent (``rstar2_env.sandbox.fleet``). The
package can be imported without Ray (extra ``ray``), which only the sandbox needs.
"""
