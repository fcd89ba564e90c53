"""What authors test with: ``check_text_env``, ``check_sandbox``, and stubs for the sandbox and for tools.

pytest fixtures are in ``rstar2_env.testing.fixtures``; nothing else here needs pytest.
"""

from __future__ import annotations

from rstar2_env.testing.checks import CHECKS
from rstar2_env.testing.conformance import check_text_env
from rstar2_env.testing.harness import ConformanceError
from rstar2_env.testing.hostile import HOSTILE_TURNS
from rstar2_env.testing.hostile_code import HOSTILE_LIMITS, HostileProgram, hostile_programs
from rstar2_env.testing.sandbox_checks import SANDBOX_CHECKS
from rstar2_env.testing.sandbox_conformance import check_sandbox
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.testing.stub_tool import StubTool
from rstar2_env.testing.toy_env import ToyEnv, same_text

__all__ = [
    "CHECKS",
    "HOSTILE_LIMITS",
    "HOSTILE_TURNS",
    "SANDBOX_CHECKS",
    "ConformanceError",
    "HostileProgram",
    "StubSandbox",
    "StubTool",
    "ToyEnv",
    "check_sandbox",
    "check_text_env",
    "hostile_programs",
    "same_text",
]
