"""The ``ray`` provider: local sandboxes on every node of a Ray cluster, used as one.

    with make_sandbox("ray", address="auto") as sandbox:
        outcomes = sandbox.run_many(jobs)

``provider`` is the sandbox, ``dispatcher`` assigns calls to nodes, ``homes`` records where sessions live, ``node``
communicates with one actor, and ``keeper`` is the actor. Importing this package does not need Ray; making a sandbox
does (extra ``ray``).
"""

from __future__ import annotations

from rstar2_env.sandbox.ray.options import RayOptions
from rstar2_env.sandbox.ray.provider import RaySandbox

__all__ = ["RayOptions", "RaySandbox"]
