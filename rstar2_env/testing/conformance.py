"""``check_text_env``: does an environment keep the contract that trainers and agents rely on?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

from rstar2_env.core.errors import UnknownNameError
from rstar2_env.testing.checks import CHECKS
from rstar2_env.testing.harness import ConformanceError, TextEnv, harness_for


def check_text_env(
    env: str | TextEnv | Callable[[], TextEnv],
    *,
    actions: Sequence[str] = (),
    seeds: Sequence[int] = (0, 1, 2),
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check an environment against Gymnasium's API and the contract of docs/environment.md. Needs no pytest.

    Args:
        env: A registered id; a function that makes a new instance; or an instance, which is made anew from its spec, or
            copied where it has none. Only an id or a function proves that instances share nothing.
        actions: Turns of the author's own to play beside the usual ones: a right answer, a typical call.
        seeds: Seeds of the episodes that are played.
        skip: Names of checks to leave out; see ``rstar2_env.testing.CHECKS``.
        **options: Options of ``gym.make``, with an id: ``sandbox=StubSandbox()`` spares real programs.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The environment breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` names no check.
        ConfigurationError: The arguments do not fit together.
    """
    for name in skip:
        if name not in CHECKS:
            raise UnknownNameError("check", name, CHECKS)
    what, harness = harness_for(env, seeds, actions, options)
    made: list[str] = []
    broken: list[tuple[str, Exception]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # What others' modules do wrong on their way out is not this environment's.
        for category in (ResourceWarning, DeprecationWarning, ImportWarning):
            warnings.simplefilter("ignore", category)
        for name, check in CHECKS.items():
            if name in skip:
                continue
            made.append(name)
            try:
                check(harness)
            except Exception as error:
                broken.append((name, error))
            finally:
                harness.close()
    if broken:
        clauses = "\n".join(f"- {name}: {_told(error)}" for name, error in broken)
        raise ConformanceError(f"{what} breaks {len(broken)} of {len(made)} checks:\n{clauses}") from broken[0][1]
    return made


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
