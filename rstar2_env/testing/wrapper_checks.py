"""The clauses of the wrapper contract, one function each; ``check_wrapper`` runs them all around every environment.

Covered: the rules for every wrapper of text environments. Not covered: the purpose of a wrapper, which its own tests
must check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import gymnasium as gym

from rstar2_env.core.status import ToolStatus
from rstar2_env.testing.conformance import check_text_env
from rstar2_env.testing.harness import ConformanceError, Harness, TextEnv, require
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.toy_env import PlainWrapper

WrapEnv = Callable[[TextEnv], TextEnv]

_CONTRACT_WITHOUT = ("gymnasium_check", "linear_time")
"""Clauses of the environment contract that do not concern wrappers, or that take long to check."""


@dataclass(slots=True)
class WrapperHarness:
    """One wrapper under test.

    Attributes:
        wrap: Puts the wrapper around an environment.
        envs: Functions that make the environments to wrap, by name.
        seeds: Seeds of the episodes that are played.
    """

    wrap: WrapEnv
    envs: Mapping[str, Callable[[], TextEnv]]
    seeds: Sequence[int]
    _made: list[TextEnv] = field(default_factory=list)

    def pairs(self) -> Iterator[tuple[str, Harness, Harness]]:
        """Yield for each environment its name, and harnesses that play it bare and wrapped."""
        for name, make in self.envs.items():
            bare, wrapped = _then(make, self.keep), _then(make, self.wrapped)
            yield name, Harness(bare, self.seeds, ()), Harness(wrapped, self.seeds, ())

    def wrapped(self, env: TextEnv) -> TextEnv:
        """Make an environment with the wrapper around it, which ``close`` closes."""
        self.keep(env)
        return self.keep(self.wrap(env))

    def close(self) -> None:
        """Close everything that was made."""
        while self._made:
            with suppress(Exception):  # ``closing`` checks environments that fail to close
                self._made.pop().close()

    def keep(self, env: TextEnv) -> TextEnv:
        """Register an environment, which ``close`` then closes."""
        self._made.append(env)
        return env


def _then(make: Callable[[], TextEnv], *steps: WrapEnv) -> Callable[[], TextEnv]:
    """Return a function that makes an environment and puts each wrapper around it, in that order."""

    def made() -> TextEnv:
        env = make()
        for step in steps:
            env = step(env)
        return env

    return made


def wrapping(harness: WrapperHarness) -> None:
    """It is a ``gymnasium.Wrapper``: the environment inside can be reached, and its spaces are text spaces."""
    for name, bare, _ in harness.pairs():
        env = bare.env()
        outer: Any = harness.wrapped(env)
        around = f"around {name}"
        require(
            isinstance(outer, gym.Wrapper), f"{around} it is a {type(outer).__name__}; derive it from gymnasium.Wrapper"
        )
        require(
            outer.unwrapped is env.unwrapped,
            f"{around}, env.unwrapped is not the environment inside; call super().__init__(env)",
        )
        for space in ("observation_space", "action_space"):
            require(
                "text" in getattr(outer, space),
                f"{around}, {space} is {getattr(outer, space)!r}, which holds no text; leave the environment's",
            )


def shapes(harness: WrapperHarness) -> None:
    """``reset`` returns a text and ``info``; ``step`` a text, a ``float``, two ``bool`` and ``info``."""
    for name, bare, wrapped in harness.pairs():
        env = wrapped.env()
        script = max(bare.scripts(bare.env()), key=len)
        first: Any = env.reset(seed=harness.seeds[0])
        _shaped(f"reset around {name}", first, (str, dict))
        for turn in script:
            step: Any = env.step(turn)
            _shaped(f"step around {name}", step, (str, float, bool, bool, dict))
            if step[2] or step[3]:
                break


def seeds(harness: WrapperHarness) -> None:
    """``reset`` passes on its seed and options: the problem is the same as in the bare environment."""
    for name, bare, wrapped in harness.pairs():
        alone, env = bare.env(), wrapped.env()
        for seed in range(harness.seeds[0], harness.seeds[0] + 8):
            expected = alone.reset(seed=seed)[1].get("problem_id")
            told = env.reset(seed=seed)[1].get("problem_id")
            require(
                told == expected,
                f"around {name}, seed {seed} plays {told!r} and not {expected!r}; reset must pass seed= on",
            )
        if expected:
            env.reset(seed=seed + 1)
            told = env.reset(seed=seed + 2, options={"problem_id": expected})[1].get("problem_id")
            require(
                told == expected,
                f"around {name}, options={{'problem_id': {expected!r}}} plays {told!r}; reset must pass options= on",
            )
        alone.reset(seed=harness.seeds[0])
        if len({alone.reset()[1].get("problem_id") for _ in range(12)}) > 1:
            env.reset(seed=harness.seeds[0])
            require(
                len({env.reset()[1].get("problem_id") for _ in range(12)}) > 1,
                f"around {name}, every reset() without a seed plays the same; never pass on the same own seed twice",
            )


def information(harness: WrapperHarness) -> None:
    """Every entry of ``info`` stays; a wrapper only adds entries."""
    for name, bare, wrapped in harness.pairs():
        alone, env = bare.env(), wrapped.env()
        for script in bare.scripts(alone):
            inner, outer = alone.reset(seed=harness.seeds[0])[1], env.reset(seed=harness.seeds[0])[1]
            require(
                not set(inner) - set(outer), f"reset around {name} leaves {_keys(inner, outer)} out of info; {_ADD}"
            )
            for turn in script:
                one, other = alone.step(turn), env.step(turn)
                over, wrapped_over = one[2] or one[3], other[2] or other[3]
                if over == wrapped_over:
                    missing = set(one[4]) - set(other[4])
                    require(not missing, f"step around {name} leaves {_keys(one[4], other[4])} out of info; {_ADD}")
                if over or wrapped_over:
                    break


def calls(harness: WrapperHarness) -> None:
    """No tool call is added or lost, and a changed call is marked: ``injected``, or the status ``blocked``."""
    for name, bare, wrapped in harness.pairs():
        alone, env = bare.env(), wrapped.env()
        for script in bare.scripts(alone):
            alone.reset(seed=harness.seeds[0])
            env.reset(seed=harness.seeds[0])
            for turn in script:
                one, other = alone.step(turn), env.step(turn)
                for inner, outer in zip_longest(one[4].get("tool_calls", ()), other[4].get("tool_calls", ())):
                    _same_call(name, inner, outer)
                if one[2] or one[3] or other[2] or other[3]:
                    break


def contract(harness: WrapperHarness) -> None:
    """The wrapped environment keeps the contract: ``check_text_env`` passes."""
    broken = []
    for name, make in harness.envs.items():
        try:
            check_text_env(_then(make, harness.wrap), seeds=harness.seeds, skip=_CONTRACT_WITHOUT)
        except ConformanceError as error:
            clauses = str(error).partition("\n")[2].replace("\n", "\n  ")
            broken.append(f"around {name} the environment's contract is broken:\n  {clauses}")
    require(not broken, "\n".join(broken))


def composition(harness: WrapperHarness) -> None:
    """It plays the same with another wrapper inside or outside it."""
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
                f"around {name}, with another wrapper {where}, {told}; reach what is innermost by env.unwrapped, and "
                "the next one by self.env",
            )


def remaking(harness: WrapperHarness) -> None:
    """``gym.make(env.spec)`` makes the environment again, with the wrapper and its options."""
    for name, make in harness.envs.items():
        env = harness.wrapped(make())
        if env.unwrapped.spec is None:
            continue  # made without Gymnasium's registry, so it has no spec
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
        require(inner == outer, f"around {name}, gym.make(env.spec) makes {inner} and not {outer}")
        same = again.reset(seed=harness.seeds[0]) == env.reset(seed=harness.seeds[0])
        require(same, f"around {name}, the environment of gym.make(env.spec) starts differently; record every option")


def closing(harness: WrapperHarness) -> None:
    """``close`` closes the environment inside, and a second ``close`` has no effect."""
    for name, make in harness.envs.items():
        inner = _Closes(make())
        env = harness.wrapped(inner)
        env.reset(seed=harness.seeds[0])
        env.close()
        require(inner.closed, f"close around {name} leaves the environment inside open; call self.env.close()")
        try:
            env.close()
        except Exception as error:
            raise AssertionError(f"close around {name}, a second time: {type(error).__name__}: {error}") from error


class _Closes(PlainWrapper):
    closed = False

    def close(self) -> None:
        self.closed = True
        super().close()


WRAPPER_CHECKS = by_name(wrapping, shapes, seeds, information, calls, contract, composition, remaking, closing)
"""Every check by its name; the first line of each docstring is the clause."""

_ADD = "change info in place, or return {**info, ...}"


def _shaped(what: str, returned: Any, kinds: tuple[type, ...]) -> None:
    found = tuple(type(part).__name__ for part in returned) if isinstance(returned, tuple) else type(returned).__name__
    names = ", ".join(kind.__name__ for kind in kinds)
    fits = isinstance(returned, tuple) and len(returned) == len(kinds)
    fits = fits and all(isinstance(part, kind) for part, kind in zip(returned, kinds, strict=True))
    require(fits, f"{what} must return ({names}), not {found}")


def _keys(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> str:
    return ", ".join(repr(key) for key in inner if key not in outer)


def _same_call(name: str, inner: Mapping[str, Any] | None, outer: Mapping[str, Any] | None) -> None:
    advice = "a refused call is reported too"
    require(outer is not None, f"around {name}, a call is missing from info['tool_calls']; {advice}")
    require(inner is not None, f"around {name}, info['tool_calls'] has a call that was not made")
    assert inner is not None
    assert outer is not None
    require(
        outer["name"] == inner["name"], f"around {name}, a call of {inner['name']!r} is reported as {outer['name']!r}"
    )
    told = outer["status"] == inner["status"] or outer["injected"] or outer["status"] == ToolStatus.BLOCKED
    require(
        told,
        f"around {name}, a call that came back {inner['status']!r} is reported as {outer['status']!r}; mark what is "
        "not the policy's doing with injected: True",
    )


def _layers(env: TextEnv) -> list[str]:
    names, layer = [], env
    while isinstance(layer, gym.Wrapper):
        if not type(layer).__module__.startswith("gymnasium."):
            names.append(type(layer).__name__)
        layer = layer.env
    return names
