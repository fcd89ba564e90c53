"""``check_sandbox``: does a provider keep the contract that tools and environments rely on?"""

from __future__ import annotations

from collections.abc import Callable, Collection

from rstar2_env.sandbox.job import Sandbox
from rstar2_env.testing.runner import run_checks
from rstar2_env.testing.sandbox_checks import SANDBOX_CHECKS, SandboxHarness


def check_sandbox(make: Callable[[], Sandbox], *, skip: Collection[str] = ()) -> list[str]:
    """Check a provider of sandboxes against the contract of docs/sandbox.md. Needs no pytest.

    Args:
        make: Makes a running sandbox: ``lambda: make_sandbox("mine", workers=2)``. It is called a few times; what it
            made is closed in the end.
        skip: Names of checks to leave out (``SANDBOX_CHECKS``): ``"sessions"`` for a provider that keeps none,
            ``"isolation"`` and ``"survival"`` for one that isolates nothing.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The provider breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` names no check.
    """
    harness = SandboxHarness(make)
    try:
        return run_checks("The sandbox", SANDBOX_CHECKS, harness, skip=skip, strict=False)
    finally:
        harness.close()
