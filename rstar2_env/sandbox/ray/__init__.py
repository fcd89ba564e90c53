"""The ``ray`` provider: local sandboxes on every node of a Ray cluster, spoken to as one.

    with make_sandbox("ray", address="auto") as sandbox:
        outcomes = sandbox.run_many(jobs)

``provider`` is what callers hold, ``dispatcher`` shares the calls out, ``homes`` knows where sessions live, ``node``
speaks with one actor, and ``keeper`` is the actor. Importing this package needs no Ray; making a sandbox does (extra
``ray``).
"""

from __future__ import annotations

from rstar2_env.sandbox.ray.options import RayOptions
from rstar2_env.sandbox.ray.provider import RaySandbox

__all__ = ["RayOptions", "RaySandbox"]
