"""Run the checks of a conformance suite, and report all failures in one error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TypeVar

from rstar2_env.core.errors import UnknownNameError
from rstar2_env.testing.harness import ConformanceError

H = TypeVar("H")


def by_name(*checks: Callable[[H], None]) -> Mapping[str, Callable[[H], None]]:
    """Return the checks of a suite by the names of their functions, in the order in which they run."""
    return MappingProxyType({check.__name__: check for check in checks})


def run_checks(
    what: str,
    checks: Mapping[str, Callable[[H], None]],
    harness: H,
    *,
    skip: Collection[str],
    after: Callable[[], None] | None = None,
    strict: bool = True,
) -> list[str]:
    """Run every check, and raise one error that lists the checks that failed.

    Args:
        what: Name of the part under test, for the error message.
        checks: The checks, by name: functions that are called with the harness, and raise an error if the part under
            test fails the check.
        harness: Object that makes the part under test; passed to every check.
        skip: Names of checks to leave out.
        after: Called after every check, to clean up.
        strict: Whether a check fails if it causes a warning.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: A check failed; the message lists each failed check with its finding.
        UnknownNameError: ``skip`` contains a name that is not a check.
    """
    for name in skip:
        if name not in checks:
            raise UnknownNameError("check", name, checks)
    made: list[str] = []
    broken: list[tuple[str, Exception]] = []
    with warnings.catch_warnings():
        if strict:
            warnings.simplefilter("error")
            # Ignore warnings that other packages cause, such as during cleanup: the part under test is not at fault.
            for category in (ResourceWarning, DeprecationWarning, ImportWarning):
                warnings.simplefilter("ignore", category)
        for name, check in checks.items():
            if name in skip:
                continue
            made.append(name)
            try:
                check(harness)
            except Exception as error:
                broken.append((name, error))
            finally:
                if after is not None:
                    after()
    if broken:
        clauses = "\n".join(f"- {name}: {_describe(error)}" for name, error in broken)
        raise ConformanceError(f"{what} fails {len(broken)} of {len(made)} checks:\n{clauses}") from broken[0][1]
    return made


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
