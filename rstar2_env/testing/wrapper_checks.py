"""Checks of the rules for wrappers, one function for each rule; ``check_wrapper`` runs them on every environment.

Covered: the rules for every wrapper of text environments. Not covered: the purpose of a wrapper, which its own tests
must check.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.testing.env_checks import check_text_env
from rstar2_env.testing.harness import ConformanceError, Harness, MadeEnvs, TextEnv, require, steps
from rstar2_env.testing.runner import by_name, run_checks
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.testing.toy_env import PlainWrapper

WrapEnv = Callable[[TextEnv], TextEnv]

_CONTRACT_WITHOUT = ("gymnasium_check", "linear_time")
"""Names of the checks of ``check_text_env`` that are skipped: a wrapper cannot make them fail, or they take long."""


@dataclass(slots=True)
class WrapperHarness(MadeEnvs):
    """One wrapper under test.

    Attributes:
        wrap: Function that puts the wrapper around an environment.
        envs: Functions that make the environments to wrap, by name.
        seeds: Seeds of the episodes that are played.
    """

    wrap: WrapEnv
    envs: Mapping[str, Callable[[], TextEnv]]
    seeds: Sequence[int]

    def pairs(self) -> Iterator[tuple[str, Harness, Harness]]:
        """Yield, for each environment, its name, a harness without the wrapper, and a harness with the wrapper."""
        for name, make in self.envs.items():
            bare, wrapped = _then(make, self.keep), _then(make, self.wrapped)
            yield name, Harness(bare, self.seeds, ()), Harness(wrapped, self.seeds, ())

    def wrapped(self, env: TextEnv) -> TextEnv:
        """Put the wrapper around an environment; the harness's ``close`` closes wrapper and environment."""
        return self.keep(self.wrap(self.keep(env)))

    def results(self) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
        """Play every script without and with the wrapper; yield the environment's name and each call's two results.

        The calls are ``reset``, and then ``step`` until one of the two episodes ends.
        """
        for name, bare, wrapped in self.pairs():
            alone, env = bare.env(), wrapped.env()
            for script in bare.scripts(alone):
                yield name, alone.reset(seed=self.seeds[0]), env.reset(seed=self.seeds[0])
                for one, other in zip(steps(alone, script), steps(env, script), strict=False):
                    yield name, one, other


def _then(make: Callable[[], TextEnv], *steps: WrapEnv) -> Callable[[], TextEnv]:
    """Return a function that makes an environment and puts the wrappers ``steps`` around it, innermost first."""

    def made() -> TextEnv:
        env = make()
        for step in steps:
            env = step(env)
        return env

    return made


def wrapping(harness: WrapperHarness) -> None:
    """Check that the wrapper is a ``gymnasium.Wrapper``, has text spaces, and keeps the value of ``unwrapped``."""
    for name, bare, _ in harness.pairs():
        env = bare.env()
        outer: Any = harness.wrapped(env)
        around = f"around {name}"
        require(
            isinstance(outer, gym.Wrapper), f"{around} it is a {type(outer).__name__}; derive it from gymnasium.Wrapper"
        )
        require(
            outer.unwrapped is env.unwrapped,
            f"{around}, env.unwrapped is not the wrapped environment; call super().__init__(env)",
        )
        for space in ("observation_space", "action_space"):
            require(
                "text" in getattr(outer, space),
                f"{around}, {space} is {getattr(outer, space)!r}, which is not a text space; keep the environment's",
            )


def shapes(harness: WrapperHarness) -> None:
    """Check the types that ``reset`` (str, dict) and ``step`` (str, float, bool, bool, dict) return."""
    for name, bare, wrapped in harness.pairs():
        env = wrapped.env()
        script = max(bare.scripts(bare.env()), key=len)
        first: Any = env.reset(seed=harness.seeds[0])
        _shaped(f"reset around {name}", first, (str, dict))
        for step in steps(env, script):
            _shaped(f"step around {name}", step, (str, float, bool, bool, dict))


def seeds(harness: WrapperHarness) -> None:
    """Check that ``reset`` passes on its seed and options: the problem is the same as in the bare environment."""
    for name, bare, wrapped in harness.pairs():
        alone, env = bare.env(), wrapped.env()
        for seed in range(harness.seeds[0], harness.seeds[0] + 8):
            expected = alone.reset(seed=seed)[1].get("problem_id")
            found = env.reset(seed=seed)[1].get("problem_id")
            require(
                found == expected,
                f"around {name}, seed {seed} plays {found!r}, not {expected!r}; forward seed= in reset",
            )
        if expected:
            env.reset(seed=seed + 1)
            found = env.reset(seed=seed + 2, options={"problem_id": expected})[1].get("problem_id")
            require(
                found == expected,
                f"around {name}, options={{'problem_id': {expected!r}}} plays {found!r}; forward options= in reset",
            )
        alone.reset(seed=harness.seeds[0])
        if len({alone.reset()[1].get("problem_id") for _ in range(12)}) > 1:
            env.reset(seed=harness.seeds[0])
            require(
                len({env.reset()[1].get("problem_id") for _ in range(12)}) > 1,
                f"around {name}, every reset() without a seed plays the same problem; do not forward a fixed seed",
            )


def information(harness: WrapperHarness) -> None:
    """Check that the wrapper removes no entry of ``info``; it may add entries."""
    for name, one, other in harness.results():
        if any(one[2:-1]) == any(other[2:-1]):  # if only one of them has ended, its info has more keys
            method, missing = "reset" if len(one) == 2 else "step", _missing(one[-1], other[-1])
            require(not missing, f"{method} around {name} leaves {missing} out of info; {_ADD}")


def calls(harness: WrapperHarness) -> None:
    """Check that no tool call is added or lost, and that a changed call is marked as ``injected`` or ``blocked``."""
    for name, one, other in harness.results():
        for inner, outer in zip_longest(one[-1].get("tool_calls", ()), other[-1].get("tool_calls", ())):
            _same_call(name, inner, outer)


def contract(harness: WrapperHarness) -> None:
    """Check that the wrapped environment keeps the contract: ``check_text_env`` passes."""
    broken = []
    for name, make in harness.envs.items():
        try:
            check_text_env(_then(make, harness.wrap), seeds=harness.seeds, skip=_CONTRACT_WITHOUT)
        except ConformanceError as error:
            clauses = str(error).partition("\n")[2].replace("\n", "\n  ")
            broken.append(f"around {name} the environment's contract is broken:\n  {clauses}")
    require(not broken, "\n".join(broken))


def composition(harness: WrapperHarness) -> None:
    """Check that the wrapper behaves in the same way if there is another wrapper inside or outside it."""
    for name, make in harness.envs.items():
        plain = Harness(_then(make, harness.wrapped), harness.seeds, ())
        env = plain.env()
        scripts = plain.scripts(env)
        expected = [plain.play(env, harness.seeds[0], script) for script in scripts]
        for where, twin in (
            ("inside", _then(make, PlainWrapper, harness.wrapped)),
            ("outside", _then(make, harness.wrapped, PlainWrapper)),
        ):
            try:
                other = twin()
                played = [plain.play(other, harness.seeds[0], script) for script in scripts]
            except Exception as error:
                told = f"it raises {type(error).__name__}: {str(error)[:200]}"
            else:
                told = "" if played == expected else "an episode differs"
            require(
                not told,
                f"around {name}, with another wrapper {where}, {told}; use env.unwrapped for the innermost "
                "environment, and self.env for the next layer",
            )


def remaking(harness: WrapperHarness) -> None:
    """Check that ``gym.make(env.spec)`` makes the environment again, with the wrapper and its options."""
    for name, make in harness.envs.items():
        env = harness.wrapped(make())
        if env.unwrapped.spec is None:
            continue  # the environment was made without Gymnasium's registry, so it has no spec
        try:
            spec = env.spec
            assert spec is not None
            again = harness.keep(gym.make(spec, disable_env_checker=True))
        except Exception as error:
            raise AssertionError(
                f"around {name}, gym.make(env.spec) raises {type(error).__name__}: {str(error)[:200]}. Derive the "
                "wrapper from gymnasium.utils.RecordConstructorArgs too, and call its __init__ with the options"
            ) from error
        inner, outer = _layers(again), _layers(env)
        require(inner == outer, f"around {name}, gym.make(env.spec) makes {inner}, not {outer}")
        same = again.reset(seed=harness.seeds[0]) == env.reset(seed=harness.seeds[0])
        require(same, f"around {name}, the environment of gym.make(env.spec) starts differently; record every option")


def closing(harness: WrapperHarness) -> None:
    """Check that ``close`` closes the wrapped environment, and that a second ``close`` raises no error."""
    for name, make in harness.envs.items():
        inner = _Closes(make())
        env = harness.wrapped(inner)
        env.reset(seed=harness.seeds[0])
        env.close()
        require(inner.closed, f"close around {name} leaves the wrapped environment open; call self.env.close()")
        try:
            env.close()
        except Exception as error:
            raise AssertionError(f"closing {name} a second time raises {type(error).__name__}: {error}") from error


class _Closes(PlainWrapper):
    closed = False

    def close(self) -> None:
        self.closed = True
        super().close()


WRAPPER_CHECKS = by_name(wrapping, shapes, seeds, information, calls, contract, composition, remaking, closing)
"""Checks by name; the first line of a check's docstring describes the check."""

_ADD = "change info in place, or return {**info, ...}"


def _shaped(what: str, returned: Any, kinds: tuple[type, ...]) -> None:
    found = tuple(type(part).__name__ for part in returned) if isinstance(returned, tuple) else type(returned).__name__
    names = ", ".join(kind.__name__ for kind in kinds)
    fits = isinstance(returned, tuple) and len(returned) == len(kinds)
    fits = fits and all(isinstance(part, kind) for part, kind in zip(returned, kinds, strict=True))
    require(fits, f"{what} must return ({names}), not {found}")


def _missing(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> str:
    return ", ".join(repr(key) for key in inner if key not in outer)


def _same_call(name: str, inner: Mapping[str, Any] | None, outer: Mapping[str, Any] | None) -> None:
    advice = "report refused calls too"
    require(outer is not None, f"around {name}, a call is missing from info['tool_calls']; {advice}")
    require(inner is not None, f"around {name}, info['tool_calls'] has a call that was not made")
    assert inner is not None
    assert outer is not None
    require(
        outer["name"] == inner["name"], f"around {name}, a call of {inner['name']!r} is reported as {outer['name']!r}"
    )
    require(
        outer["status"] == inner["status"] or outer["injected"] or outer["status"] == ToolStatus.BLOCKED,
        f"around {name}, a call with the status {inner['status']!r} is reported as {outer['status']!r}; set "
        "injected to True in a call that the wrapper changed",
    )


def _layers(env: TextEnv) -> list[str]:
    names, layer = [], env
    while isinstance(layer, gym.Wrapper):
        if not type(layer).__module__.startswith("gymnasium."):
            names.append(type(layer).__name__)
        layer = layer.env
    return names


AROUND = ("rstar2/MathTool-v0", "rstar2/TicTacToe-v0", "rstar2/Countdown-v0")
"""Environments to wrap by default: a math environment with a tool, a game of several turns, a puzzle."""


def check_wrapper(
    wrapper: Callable[..., TextEnv],
    *,
    envs: Sequence[str | Callable[[], TextEnv]] = AROUND,
    seeds: Sequence[int] = (0,),
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check a wrapper against the contract of docs/wrappers.md. Needs no pytest.

    Args:
        wrapper: A class, or a function that puts one wrapper or several around an environment.
        envs: Environments to wrap: registered ids, whose sandbox is replaced with a stub, or functions that make an
            environment.
        seeds: Seeds of the episodes that are played.
        skip: Names of checks to leave out; see ``rstar2_env.testing.WRAPPER_CHECKS``.
        **options: Options of the wrapper.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The wrapper breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` contains a name that is not a check.
        ConfigurationError: ``wrapper`` is not callable, there is no environment or no seed, or an option is invalid.
    """
    if not callable(wrapper) or isinstance(wrapper, gym.Env):
        raise ConfigurationError(
            f"check_wrapper takes a class or a function that wraps an environment, not {wrapper!r}."
        )
    if isinstance(envs, str) or not envs or not seeds:
        raise ConfigurationError(
            f"check_wrapper needs a list of at least one environment, and at least one seed; got {envs!r} and "
            f"{seeds!r}."
        )
    name = getattr(wrapper, "__qualname__", repr(wrapper))
    makers = {_name(env): partial(_stubbed, env) if isinstance(env, str) else env for env in envs}
    harness = WrapperHarness(lambda env: wrapper(env, **options), makers, seeds)
    harness.wrapped(next(iter(makers.values()))())  # errors about its options are raised unchanged
    harness.close()
    return run_checks(f"The wrapper {name}", WRAPPER_CHECKS, harness, skip=skip, after=harness.close)


def _stubbed(env_id: str) -> TextEnv:
    """Make an environment with a stub instead of its sandbox, if it has a sandbox."""
    try:
        return gym.make(env_id, sandbox=StubSandbox("42 and more"), disable_env_checker=True)
    except (TypeError, ConfigurationError):  # the environment has no sandbox
        return gym.make(env_id, disable_env_checker=True)


def _name(env: str | Callable[[], TextEnv]) -> str:
    return env if isinstance(env, str) else str(getattr(env, "__qualname__", repr(env)))
