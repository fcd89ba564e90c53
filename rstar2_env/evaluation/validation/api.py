"""``validate``: check every problem of an environment, or perform the checks of a level."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack, overload

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Seed, call_with_options, checked
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.progress import progress as show_progress
from rstar2_env.core.stop_request import Stop
from rstar2_env.env.named import EnvSpec, find_env
from rstar2_env.env.options import env_options as typed_env_options
from rstar2_env.evaluation.validation.bench import Bench, Bounds
from rstar2_env.evaluation.validation.levels import Report, run_levels
from rstar2_env.evaluation.validation.problems import Validation, validate_problems
from rstar2_env.problems import ProblemSpec, load_problems
from rstar2_env.wrappers.make import make_env
from rstar2_env.wrappers.registry import read_wrappers

PLAYS = 16
"""Default number of episodes that each scripted player plays for the checks of a level."""


class ValidationKeywords(TypedDict, total=False):
    """Keywords that ``validate`` accepts both with a level and without one."""

    problems: ProblemSpec | None
    split: str
    episodes: Count | None
    seed: Seed
    contract: bool
    env_options: Mapping[str, Any] | None
    wrappers: str | Sequence[PartSpec]
    progress: Callable[..., None] | bool
    stop: Stop | None


@overload
def validate(
    env_id: EnvSpec, *, level: None = None, workers: Count | None = None, **options: Unpack[ValidationKeywords]
) -> Validation: ...


@overload
def validate(
    env_id: EnvSpec,
    *,
    level: int,
    checks: Sequence[str] = (),
    bounds: Bounds | Mapping[str, Any] | None = None,
    **options: Unpack[ValidationKeywords],
) -> Report: ...


@checked
def validate(
    env_id: EnvSpec,
    *,
    level: int | None = None,
    problems: ProblemSpec | None = None,
    split: str = "train",
    episodes: Count | None = None,
    seed: Seed = 0,
    workers: Count | None = None,
    contract: bool = True,
    checks: Sequence[str] = (),
    bounds: Bounds | Mapping[str, Any] | None = None,
    env_options: Mapping[str, Any] | None = None,
    wrappers: str | Sequence[PartSpec] = (),
    progress: Callable[..., None] | bool = True,
    stop: Stop | None = None,
) -> Validation | Report:
    """Check an environment's contract and every problem, or perform the checks of a level and of all lower levels.

    Args:
        env_id: A Gymnasium id, the user's own code, or a class or function, as for ``make_env``.
        level: ``None`` checks problem by problem; 1 (static), 2 (runtime), 3 (semantic) or 4 (statistical) performs
            the checks of docs/validation.md.
        problems: A source, as for ``load_problems``; ``None`` means the environment's own problems. If the environment
            has no problems (a mixture of environments, for example), only the contract is checked.
        split: Split of the problems, if the source has splits.
        episodes: Without a level, the number of problems to check, beginning with the first; ``None`` means every
            problem of a finite source, and 100 of an unlimited source. With a level, the number of episodes of each
            player; ``None`` means 16.
        seed: Seed of the episodes; with a level, the first seed.
        workers: Without a level, the number of threads, each with an environment; ``None`` means two per CPU core.
        contract: Whether to check also the whole contract of docs/environment-contract.md; with a level, whether to
            perform the check ``contract``.
        checks: With a level, the names of checks: only these checks are performed. Empty means all checks of this
            level and of the levels below.
        bounds: With a level, ``Bounds`` of the environment's author, or their values by name; ``None`` means the
            defaults of ``Bounds``.
        env_options: Options of the environment.
        wrappers: Wrappers of the environment, innermost first, as for ``make_env``; the checks apply to the wrapped
            environment.
        progress: Show the progress on stderr or in a notebook; or a callback. The callback receives the number of
            finished problems (with a level, of finished checks) and the number of all, and with a level also the name
            of the check that begins.
        stop: Once a stop is requested, running checks finish and no further check begins.

    Returns:
        A ``Validation`` without a level, a ``Report`` with a level; each has ``ok`` and ``to_dict``.

    Raises:
        ConfigurationError: The options contradict each other, or there is nothing to check.
        UnknownNameError: There is no such check.
        SandboxUnavailableError: Without a level: the contract's checks run programs, and the sandbox cannot start.
    """
    if level is None and (checks or bounds):
        raise ConfigurationError("`checks` and `bounds` require a level from 1 to 4, such as validate(..., level=1).")
    stop = Stop() if stop is None else stop
    options = dict(env_options or {})
    if problems is not None and level is not None:
        options["problems"] = problems
    if split != "train" and (problems is None or level is not None):
        options.setdefault("split", split)
    env = find_env(env_id)
    make = partial(make_env, env_id, wrappers=read_wrappers(wrappers), **typed_env_options(env, options))
    with show_progress("checking", total=episodes if level is None else None, show=progress is True) as shown:
        report = progress if callable(progress) else shown
        if level is None:
            source = None if problems is None else load_problems(problems, split=split)
            workers = 2 * (os.cpu_count() or 1) if workers is None else workers
            return validate_problems(env.name, make, source, episodes, seed, workers, contract, report, stop)
        if not isinstance(bounds, Bounds):
            bounds = call_with_options("bounds", Bounds, dict(bounds or {}), prefix="bounds.")
        bench = Bench(env, make, PLAYS if episodes is None else episodes, seed, bounds, contract)
        return run_levels(bench, level, checks, report, stop)
