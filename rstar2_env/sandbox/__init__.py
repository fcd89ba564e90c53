"""Run a model's Python safely: ``make_sandbox("local")`` gives a sandbox, ``run(Job(code))`` an ``Outcome``.

    from rstar2_env.sandbox import Job, make_sandbox

    with make_sandbox("local") as sandbox:
        print(sandbox.run(Job("print(6 * 7)")).stdout)

The records are in ``job``, the providers' registry in ``providers``, the local provider in ``local`` and ``inside``.
What is isolated, by what, and what is not: docs/sandbox.md.
"""

from __future__ import annotations

from rstar2_env.sandbox.job import Capability, Job, Limits, Outcome, Sandbox, SessionState
from rstar2_env.sandbox.local import LocalSandbox
from rstar2_env.sandbox.options import LocalOptions
from rstar2_env.sandbox.providers import PROVIDERS, make_sandbox
from rstar2_env.sandbox.shared import SharedSandbox, shared_sandbox

__all__ = [
    "PROVIDERS",
    "Capability",
    "Job",
    "Limits",
    "LocalOptions",
    "LocalSandbox",
    "Outcome",
    "Sandbox",
    "SessionState",
    "SharedSandbox",
    "make_sandbox",
    "shared_sandbox",
]
