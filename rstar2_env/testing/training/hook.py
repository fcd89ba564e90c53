"""``check_hook``: checks that a hook can be called, and acts in the same way on every process and after a resume."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.randomness import untouched
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.training.lookup import check_part, resumed
from rstar2_env.testing.training.plain_run import TERMS, PlainRun

STEPS = 24


@dataclass(frozen=True, slots=True)
class HookHarness:
    """One hook under test.

    Attributes:
        make: Function that makes a new hook.
        terms: Coefficients of the loss terms, by the term's name, in the run that the hook is bound to.
    """

    make: Callable[[], Any]
    terms: Mapping[str, float]

    def bound(self) -> tuple[Any, PlainRun]:
        """Return a new hook that is bound to a new run."""
        hook, run = self.make(), PlainRun(STEPS, self.terms)
        if hasattr(hook, "bind"):
            hook.bind(run)
        return hook, run


def events(harness: HookHarness) -> None:
    """Check that the hook has at least one event method, and that each accepts ``(args, state, control, **kwargs)``.

    Event methods are the methods of ``TrainerCallback``; a method ``on_...`` with any other name fails the check.
    """
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
            raise AssertionError(f"{name} must accept (args, state, control, **kwargs): {error}") from error


def binding(harness: HookHarness) -> None:
    """Check that ``bind`` does not change the run, and raises if the run lacks something that the hook needs."""
    _, run = harness.bound()
    require(not run.done, f"`bind` changed the run ({run.done}); act in on_train_begin or later")
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
            f"in a run without a reference model and KL term, the hook fails after the start ({error}); in "
            "`bind()`, check whether the run has them"
        ) from error


def whole_run(harness: HookHarness) -> None:
    """Check that the hook raises no error in a whole run, and sets only valid values."""
    hook, run = harness.bound()
    with untouched():
        run.events(hook, range(STEPS))


def processes(harness: HookHarness) -> None:
    """Check that the hook depends only on its inputs, so that it acts in the same way on every process."""
    done = []
    for _ in range(2):
        hook, run = harness.bound()
        run.events(hook, range(STEPS))
        done.append(run.done)
    if done[0] != done[1]:
        raise AssertionError(f"on two processes, the hook behaves differently than on one: {_difference(*done)}")


def resuming(harness: HookHarness) -> None:
    """Check that a new hook that loads an old hook's state continues an interrupted run as the old hook would."""
    whole, expected = harness.bound()
    expected.events(whole, range(STEPS))
    for stop in (1, 5, STEPS // 2, STEPS - 4):
        hook, run = harness.bound()
        run.events(hook, range(stop), end=False)
        if run.stopped:  # the hook has ended the run, and a finished run cannot be resumed
            break
        later_hook, later = harness.bound()
        later.restore(run.settings())
        later.step, later.figures = stop, dict(run.figures)
        if hasattr(hook, "state_dict"):
            resumed(hook, later_hook)
        later.events(later_hook, range(stop, STEPS))
        again = run.done + later.done
        if again != expected.done:
            raise AssertionError(
                f"when resumed after {stop} steps, the hook behaves differently than without the interruption: "
                f"{_difference(again, expected.done)}; save "
                "the hook's counters in state_dict, restore them in load_state_dict, and initialize only if "
                "state.global_step is 0"
            )


HOOK_CHECKS = by_name(events, binding, whole_run, processes, resuming)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_hook(
    hook: PartSpec | object,
    *,
    terms: Mapping[str, float] = TERMS,
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check a hook against its contract (docs/part-interfaces.md). Needs no pytest, no torch and no model.

    Args:
        hook: A name as a recipe writes it (``"kl_schedule:end=0"``, ``"./mine.py:Name"``), a class, or the hook itself.
        terms: Names and coefficients of the loss terms in the run that the hook is bound to.
        skip: Names of checks to leave out; see ``rstar2_env.testing.HOOK_CHECKS``.
        **options: Options of the hook, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The hook breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no hook with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    return check_part("hook", hook, options, HOOK_CHECKS, partial(HookHarness, terms=terms), skip=skip)


def _difference(one: list[Any], other: list[Any]) -> str:
    """Describe the first difference between two unequal lists of actions."""
    left, right = next(pair for pair in zip_longest(one, other) if pair[0] != pair[1])
    return f"{_described(left)}, and {_described(right)}"


def _described(action: tuple[int, str, Any] | None) -> str:
    if action is None:
        return "nothing"
    step, what, value = action
    return f"{what}{'' if value is None else f' {value!r:.40}'} at step {step}"
