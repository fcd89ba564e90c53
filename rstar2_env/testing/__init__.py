"""Tools for testing your own parts: a check for each kind of part, and stubs for the sandbox and for tools.

``check_text_env``, ``check_agent``, ``check_wrapper`` and ``check_sandbox`` name every clause that a part breaks.

pytest fixtures are in ``rstar2_env.testing.fixtures``; nothing else here needs pytest.
"""

from __future__ import annotations

from rstar2_env.testing.agent_checks import AGENT_CHECKS
from rstar2_env.testing.agent_conformance import check_agent
from rstar2_env.testing.checks import CHECKS
from rstar2_env.testing.conformance import check_text_env
from rstar2_env.testing.harness import ConformanceError
from rstar2_env.testing.hostile import HOSTILE_TURNS
from rstar2_env.testing.hostile_code import HOSTILE_LIMITS, HostileProgram, hostile_programs
from rstar2_env.testing.plain_env import PlainEnv, PlainWrapper
from rstar2_env.testing.sandbox_checks import SANDBOX_CHECKS
from rstar2_env.testing.sandbox_conformance import check_sandbox
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.testing.stub_tool import StubTool
from rstar2_env.testing.toy_env import ToyEnv, same_text
from rstar2_env.testing.wrapper_checks import WRAPPER_CHECKS
from rstar2_env.testing.wrapper_conformance import check_wrapper

__all__ = [
    "AGENT_CHECKS",
    "CHECKS",
    "HOSTILE_LIMITS",
    "HOSTILE_TURNS",
    "SANDBOX_CHECKS",
    "WRAPPER_CHECKS",
    "ConformanceError",
    "HostileProgram",
    "PlainEnv",
    "PlainWrapper",
    "StubSandbox",
    "StubTool",
    "ToyEnv",
    "check_agent",
    "check_sandbox",
    "check_text_env",
    "check_wrapper",
    "hostile_programs",
    "same_text",
]
