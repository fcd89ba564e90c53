"""``check_sandbox``: does a provider keep the contract that tools and environments rely on?"""

from __future__ import annotations

from collections.abc import Callable, Collection

from rstar2_env.core.errors import UnknownNameError
from rstar2_env.sandbox.job import Sandbox
from rstar2_env.testing.harness import ConformanceError
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
    for name in skip:
        if name not in SANDBOX_CHECKS:
            raise UnknownNameError("check", name, SANDBOX_CHECKS)
    harness = SandboxHarness(make)
    made: list[str] = []
    broken: list[tuple[str, Exception]] = []
    try:
        for name, check in SANDBOX_CHECKS.items():
            if name not in skip:
                made.append(name)
                try:
                    check(harness)
                except Exception as error:
                    broken.append((name, error))
    finally:
        harness.close()
    if broken:
        clauses = "\n".join(f"- {name}: {_told(error)}" for name, error in broken)
        what = f"The sandbox breaks {len(broken)} of {len(made)} checks"
        raise ConformanceError(f"{what}:\n{clauses}") from broken[0][1]
    return made


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
