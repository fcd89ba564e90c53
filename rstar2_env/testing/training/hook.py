"""``check_hook``: checks that a hook can be called, and acts the same on every process and after a resume."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.runner import run_checks
from rstar2_env.testing.training.lookup import maker
from rstar2_env.testing.training.plain_run import TERMS, PlainRun
from rstar2_env.testing.training.randomness import untouched

STEPS = 24


@dataclass(frozen=True, slots=True)
class HookHarness:
    """One hook under test.

    Attributes:
        make: Makes a new hook.
        terms: Coefficients of the loss terms in the run that it is bound to.
    """

    make: Callable[[], Any]
    terms: Mapping[str, float]

    def bound(self) -> tuple[Any, PlainRun]:
        """A new hook, bound to a new run."""
        hook, run = self.make(), PlainRun(STEPS, self.terms)
        if hasattr(hook, "bind"):
            hook.bind(run)
        return hook, run


def events(harness: HookHarness) -> None:
    """It has a method of transformers' ``TrainerCallback`` with the arguments ``(args, state, control, **kwargs)``."""
    known = importlib.import_module("rstar2_env.trainers.hooks.base").EVENTS
    hook = harness.make()
    named = [name for name in dir(hook) if name.startswith("on_") and callable(getattr(hook, name))]
    unknown = [name for name in named if name not in known]
    require(not unknown, f"no trainer calls {', '.join(unknown)}; the events are {', '.join(known)}")
    require(named, f"it has none of the methods {', '.join(known)}")
    for name in named:
        try:
            given = dict.fromkeys(("model", "optimizer", "lr_scheduler", "logs", "metrics"))
            inspect.signature(getattr(hook, name)).bind(None, None, None, **given)
        except TypeError as error:
            raise AssertionError(f"{name}(args, state, control, **kwargs) is how it is called: {error}") from error


def binding(harness: HookHarness) -> None:
    """``bind`` keeps the run and does not change it; it raises if the run lacks something that the hook needs."""
    _, run = harness.bound()
    require(not run.done, f"bind changed the run ({run.done}); act in on_train_begin or later")
    hook = harness.make()
    if not hasattr(hook, "bind"):
        return
    bare = PlainRun(STEPS, {}, reference=False)
    try:
        hook.bind(bare)
    except ConfigurationError:
        return
    try:
        bare.events(hook, range(STEPS))
    except (ConfigurationError, AssertionError) as error:
        raise AssertionError(
            f"in a run without a reference model and KL term, it fails in the middle ({error}); ask in bind"
        ) from error


def whole_run(harness: HookHarness) -> None:
    """It runs through a whole run, and the values that it sets are valid."""
    hook, run = harness.bound()
    with untouched():
        run.events(hook, range(STEPS))


def processes(harness: HookHarness) -> None:
    """It acts only on its inputs: on another process of the run, it does the same at the same steps."""
    done = []
    for _ in range(2):
        hook, run = harness.bound()
        run.events(hook, range(STEPS))
        done.append(run.done)
    require(done[0] == done[1], f"on two processes it acts differently: {_parting(*done)}")


def resuming(harness: HookHarness) -> None:
    """A new hook that loads its state (through JSON, if it has any) continues as the old hook would have."""
    whole, expected = harness.bound()
    expected.events(whole, range(STEPS))
    for stop in (1, 5, STEPS // 2, STEPS - 4):
        hook, run = harness.bound()
        run.events(hook, range(stop), end=False)
        if run.stopped:  # a finished run is not resumed
            break
        kept = json.dumps(hook.state_dict(), allow_nan=False) if hasattr(hook, "state_dict") else None
        resumed, later = harness.bound()
        later.restore(run.settings())
        later.step, later.figures = stop, dict(run.figures)
        if kept is not None:
            resumed.load_state_dict(json.loads(kept))
        later.events(resumed, range(stop, STEPS))
        again = run.done + later.done
        require(
            again == expected.done,
            f"resumed after {stop} steps, it acts differently: {_parting(again, expected.done)}; keep what it counts "
            "in state_dict and load_state_dict, and begin only where state.global_step is 0",
        )


HOOK_CHECKS: Mapping[str, Callable[[HookHarness], None]] = MappingProxyType(
    {check.__name__: check for check in (events, binding, whole_run, processes, resuming)}
)
"""Every check by its name; the first line of each docstring is the clause."""


def check_hook(
    hook: PartSpec | object,
    *,
    terms: Mapping[str, float] = TERMS,
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check a hook against its contract (docs/add-a-trainer.md). Needs no pytest, no torch and no model.

    Args:
        hook: A name as a recipe writes it (``"kl_schedule:end=0"``, ``"./mine.py:Name"``), a class, or the hook itself.
        terms: Names and coefficients of the loss terms in the run that it is bound to.
        skip: Names of checks to leave out; see ``rstar2_env.testing.HOOK_CHECKS``.
        **options: Options of the hook, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The hook breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no hook of that name, or ``skip`` contains a name that is not a check.
        ConfigurationError: The options do not fit.
    """
    what, make = maker("hook", hook, options)
    make()  # errors about the options are raised unchanged
    return run_checks(f"The hook {what}", HOOK_CHECKS, HookHarness(make, dict(terms)), skip=skip)


def _parting(one: list[Any], other: list[Any]) -> str:
    """Describe the first difference between two lists of actions."""
    for left, right in zip(one, other, strict=False):
        if left != right:
            return f"{_told(left)}, and {_told(right)}"
    longer = one if len(one) > len(other) else other
    rest = longer[min(len(one), len(other)) :]
    return f"{_told(rest[0])}, and nothing" if rest else "nothing"


def _told(did: tuple[int, str, Any]) -> str:
    step, what, value = did
    return f"{what}{'' if value is None else f' {value!r:.40}'} at step {step}"
