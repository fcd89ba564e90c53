"""Runs a model's Python safely: ``make_sandbox("local")`` starts a sandbox, ``run(Job(code))`` returns an ``Outcome``.

    from rstar2_env.sandbox import Job, make_sandbox

    with make_sandbox("local") as sandbox:
        print(sandbox.run(Job("print(6 * 7)")).stdout)

``job`` and ``limits`` define the records, ``providers`` the registry of providers, and ``local`` and ``inside`` the
local provider. docs/sandbox.md describes the layers that isolate a program, and their gaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rstar2_env.core.lazy_names import lazy_names
from rstar2_env.sandbox.job import Capability, Job, Outcome, Sandbox, SessionState
from rstar2_env.sandbox.limits import Limits
from rstar2_env.sandbox.providers import PROVIDERS, make_sandbox
from rstar2_env.sandbox.shared import SharedSandbox, end_idle_sandboxes, shared_sandbox

if TYPE_CHECKING:
    from rstar2_env.sandbox.base import BaseSandbox
    from rstar2_env.sandbox.local.provider import LocalSandbox
    from rstar2_env.sandbox.options import LocalOptions

__all__ = [
    "PROVIDERS",
    "BaseSandbox",
    "Capability",
    "Job",
    "Limits",
    "LocalOptions",
    "LocalSandbox",
    "Outcome",
    "Sandbox",
    "SessionState",
    "SharedSandbox",
    "end_idle_sandboxes",
    "make_sandbox",
    "shared_sandbox",
]


# Classes that run jobs; an environment without tools does not import them.
_WHERE = {"BaseSandbox": "base", "LocalOptions": "options", "LocalSandbox": "local.provider"}

if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
