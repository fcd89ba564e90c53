"""``check_text_env``: checks that an environment keeps the contract that trainers and agents rely on."""

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
        env: A registered id; a function that makes a new instance; or an instance, which is made again from its spec,
            or copied if it has no spec. Only an id or a function can prove that instances share no state.
        actions: Turns to play in addition to the usual ones, such as a right answer or a typical call.
        seeds: Seeds of the episodes that are played.
        skip: Names of checks to leave out; see ``rstar2_env.testing.CHECKS``.
        **options: Options of ``gym.make``, when ``env`` is an id: with ``sandbox=StubSandbox()`` no program is run.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The environment breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` contains a name that is not a check.
        ConfigurationError: The arguments do not fit together.
    """
    what, harness = harness_for(env, seeds, actions, options)
    return run_checks(what, CHECKS, harness, skip=skip, after=harness.close)
