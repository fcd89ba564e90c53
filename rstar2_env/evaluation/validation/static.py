"""Level 1, static: checks of an environment before an episode is played.

OpenEnv's RFC 008 also checks an environment's container image, and the image's layers and labels. These checks have no
counterpart here, because the environment runs in this process.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import islice
from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.reference import playing, reference_of
from rstar2_env.env.spaces import UnicodeText
from rstar2_env.evaluation.validation.bench import Bench, TextEnv, source_of
from rstar2_env.evaluation.validation.check import CheckFinding, NotApplicableError, check
from rstar2_env.problems import FiniteSource, Problem
from rstar2_env.sandbox.limits import Limits

_TIMEOUT_CEILING_S = 3600.0
_LOOKED_AT = 200
"""Maximum number of problems to check; below it, the number is the larger of 16 and four times ``Bench.plays``."""


@check(
    1,
    demands="The environment can be created by its name without arguments, and its docstring describes it.",
    remedy="Give every argument a default, and the class a docstring whose first line describes the environment.",
)
def manifest(bench: Bench) -> CheckFinding:
    """Check that the environment has a versioned id and a description, and needs no arguments (OpenEnv RFC 008)."""
    maker = bench.found.creator
    said = inspect.cleandoc(getattr(maker, "__doc__", None) or "").partition("\n")[0]
    spec = gym.registry.get(bench.found.env_id)
    figures = {"id": bench.found.env_id or bench.found.name, "says": said[:200]}
    if spec is not None and spec.version is None:
        return CheckFinding(
            False,
            f"the id {spec.id} does not end with a version (-v0), which is needed to distinguish results",
            figures,
        )
    if maker is not None and not said:
        return CheckFinding(False, "the environment does not have a docstring", figures)
    bench.env.reset(seed=bench.seed)
    return CheckFinding(True, said or "the environment was created by its name", figures)


@check(
    1,
    demands="The action space and the observation space contain text of a stated maximum length.",
    remedy="Use rstar2_env.env.spaces.UnicodeText for action_space and observation_space.",
)
def text_spaces(bench: Bench) -> CheckFinding:
    """Check that actions and observations are texts of a stated maximum length (not in RFC 008)."""
    env = bench.env
    lengths = {}
    for kind in ("action", "observation"):
        space = getattr(env, f"{kind}_space", None)
        if isinstance(space, (UnicodeText, gym.spaces.Text)):
            lengths[kind] = int(space.max_length)
        else:
            return CheckFinding(False, f"the {kind} space is {space}; expected text of a stated maximum length")
    return CheckFinding(True, "actions and observations are texts", lengths)


@check(
    1,
    demands="The registration does not limit the number of steps, and no program may run for more than an hour.",
    remedy="Remove max_episode_steps from gym.register (the environment has max_turns), and lower Limits.wall_s.",
)
def timeout_ceiling(bench: Bench) -> CheckFinding:
    """Check that ``gym.register`` sets no step limit, and that no program may run for over an hour (OpenEnv RFC 008).

    A step limit is a fault because Gymnasium's ``TimeLimit`` can set ``terminated`` and ``truncated`` in the same step.
    """
    spec = gym.registry.get(bench.found.env_id)
    if spec is not None and spec.max_episode_steps is not None:
        return CheckFinding(False, f"gym.register was called with max_episode_steps={spec.max_episode_steps}")
    longest = max((limits.wall_s for limits in _limits(bench)), default=None)
    if longest is not None and longest > _TIMEOUT_CEILING_S:
        return CheckFinding(False, f"a program may run for {longest:g} s; at most {_TIMEOUT_CEILING_S:g} s are allowed")
    return CheckFinding(
        True, "no time limit exceeds an hour", {} if longest is None else {"longest_program_s": longest}
    )


@check(
    1,
    demands="Every tool that runs programs declares the time, memory and output that a program may use.",
    remedy="Give the tool limits (rstar2_env.sandbox.limits.Limits).",
)
def resource_declaration(bench: Bench) -> CheckFinding:
    """Check that every tool that runs programs declares limits of time and memory (OpenEnv RFC 008)."""
    declared = _limits(bench)
    if not declared:
        raise NotApplicableError("the environment has no tool that runs programs in a sandbox")
    most = max(declared, key=lambda limits: limits.memory_mb)
    return CheckFinding(
        all(limits.wall_s > 0 and limits.memory_mb > 0 for limits in declared),
        f"{len(declared)} tools with limits",
        {"wall_s": most.wall_s, "memory_mb": most.memory_mb, "output_bytes": most.output_bytes},
    )


@check(
    1,
    demands="Another instance has the same problems in the same order, under the same ids.",
    remedy="Draw problems with the seed of the source (ProceduralSource), not from the clock or from a Python set.",
)
def task_distribution_pinning(bench: Bench) -> CheckFinding:
    """Check that two instances of the environment have the same problems in the same order (OpenEnv RFC 008)."""
    one, other = _first(bench, bench.env), _first(bench, bench.fresh())
    for number, (here, there) in enumerate(zip(one, other, strict=False)):
        if here != there:
            return CheckFinding(False, f"problem {number} ({here.id!r}) is different in another instance")
    return CheckFinding(
        len(one) == len(other),
        f"the first {len(one)} problems are the same in another instance",
        {"compared": len(one)},
    )


@check(
    1,
    demands="Every problem has a question and an id, and no two different problems have the same id.",
    remedy="Remove problems without a question or an id from the source, and give different problems different ids.",
)
def problem_ids(bench: Bench) -> CheckFinding:
    """Check that every problem has a question and a unique id (not in RFC 008)."""
    seen: dict[str, Problem] = {}
    for problem in _first(bench, bench.env):
        if not problem.question.strip() or not problem.id:
            return CheckFinding(False, f"problem {problem.id!r} has no {'question' if problem.id else 'id'}")
        other = seen.setdefault(problem.id, problem)
        if other != problem:
            return CheckFinding(False, f"two problems have the id {problem.id!r}")
    return CheckFinding(True, f"{len(seen)} ids", {"looked_at": len(seen)})


@check(
    1,
    demands="No problem is in both splits, train and test.",
    remedy="Choose the split of a problem by its question, as ProceduralSource and holdout= do.",
)
def splits_disjoint(bench: Bench) -> CheckFinding:
    """Check that training and test problems are disjoint (not in RFC 008)."""
    own = source_of(bench.env)
    if own is not None and own.split == "test":
        raise NotApplicableError("the environment uses the problems of the split 'test' by default")
    bench.env.reset(seed=bench.seed)
    # The question of a game is only the first position; meta names the opponent.
    game = reference_of(playing(bench.env)) is not None
    train = _contents(bench, bench.env, game)
    try:
        test = _test_split(bench, game)
    except (ConfigurationError, TypeError, ValueError, LookupError) as error:
        raise NotApplicableError(f"the environment does not have a split 'test': {str(error)[:200]}") from error
    both = train & test
    said = (
        f"{len(both)} of the {len(test)} problems of the split 'test' are also in 'train'"
        if both
        else "no problem is in both splits"
    )
    return CheckFinding(not both, said, {"train": len(train), "test": len(test), "both": len(both)})


def _test_split(bench: Bench, game: bool) -> set[str]:
    make: Any = bench.make
    try:
        env = make(split="test")
    except TypeError as error:
        raise NotApplicableError("the environment does not have an option `split`") from error
    try:
        own = source_of(env)
        if own is None or own.split != "test":
            raise NotApplicableError("the problems of the environment are not divided into splits")
        return _contents(bench, env, game)
    finally:
        env.close()


def _contents(bench: Bench, env: TextEnv, game: bool) -> set[str]:
    return {f"{problem.question}\n{dict(problem.meta)}" if game else problem.question for problem in _first(bench, env)}


def _first(bench: Bench, env: TextEnv) -> Sequence[Problem]:
    source = source_of(env)
    if source is None:
        raise NotApplicableError("the environment does not expose a source of problems (env.unwrapped.problems)")
    wanted = min(_LOOKED_AT, max(16, 4 * bench.plays))
    return list(islice(source, min(wanted, len(source)) if isinstance(source, FiniteSource) else wanted))


def _limits(bench: Bench) -> list[Limits]:
    """Return the limits of the tools; episodes of a mixture may have different tools, so all seeds are tried."""
    found: dict[int, Any] = {}
    for seed in bench.seeds:
        bench.env.reset(seed=seed)
        for tool in getattr(getattr(playing(bench.env), "tools", None), "tools", ()):
            found[id(tool)] = getattr(tool, "limits", None)
    return [limits for limits in found.values() if isinstance(limits, Limits)]
