"""``check_text_env``: does an environment keep the contract that trainers and agents rely on?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from rstar2_env.testing.checks import CHECKS
from rstar2_env.testing.harness import TextEnv, harness_for
from rstar2_env.testing.runner import run_checks


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
    what, harness = harness_for(env, seeds, actions, options)
    return run_checks(what, CHECKS, harness, skip=skip, after=harness.close)
