"""``check_sandbox``: checks that a provider keeps the contract that tools and environments rely on."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rstar2_env.sandbox.job import Sandbox
from rstar2_env.testing.runner import run_checks
from rstar2_env.testing.sandbox_checks import SANDBOX_CHECKS, SandboxHarness


def check_sandbox(make: Callable[[], Sandbox], *, skip: Collection[str] = ()) -> list[str]:
    """Check a provider of sandboxes against the contract of docs/sandbox.md. Needs no pytest.

    Args:
        make: Makes a running sandbox: ``lambda: make_sandbox("mine", workers=2)``. It is called a few times; its
            sandboxes are closed at the end.
        skip: Names of checks to leave out (``SANDBOX_CHECKS``): ``"sessions"`` for a provider without
            sessions, ``"isolation"`` and ``"survival"`` for a provider without isolation.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The provider breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` contains a name that is not a check.
    """
    harness = SandboxHarness(make)
    try:
        return run_checks("The sandbox", SANDBOX_CHECKS, harness, skip=skip, strict=False)
    finally:
        harness.close()
