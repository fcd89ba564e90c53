"""``make_parts``: create the parts named in a run's options.

Covered: finding each part, converting and checking its options, and resolving ``correction="auto"`` and options that
come from the run. Not covered: whether the recipe's part or the user's takes precedence (``layers``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options, typed_options
from rstar2_env.core.options.parts import Part, is_factory, part_named
from rstar2_env.problems import FiniteSource, ProblemSource
from rstar2_env.rewards.component import Component, component_options, make_component

from ..advantages.base import Advantage, check_group_size
from ..hooks.base import Hook
from ..losses.base import Aggregation, Correction, Term
from ..rollouts.base import Rollout, as_rollout, check_waits
from ..samplers.base import Sampler
from ..selectors.base import Selector, Settles
from .config import LISTS, TrainConfig
from .slots import FIELDS, GIVEN, given_to, part_options

AUTO = "auto"
_CALLED_WITH: Mapping[str, tuple[str, ...]] = {
    "rollout": ("starts", "size", "play"),
    "selector": ("group", "keep", "rng"),
    "advantage": ("groups", "ranks"),
    "loss": ("tokens",),
    "aggregation": ("lengths", "groups", "ranks"),
    "correction": ("tokens",),
}
_HAS: Mapping[str, tuple[str, ...]] = {"loss": ("needs", "policy_gradient"), "correction": ("needs",)}
"""Attributes that a part must have, by slot; other slots require none."""


@dataclass(frozen=True, slots=True)
class FilledOption:
    """An option of a part that was filled in from an option of the run.

    Attributes:
        slot: Slot of the part.
        part: The created part; for a reward component, the object ``Component.score``.
        name: Name of the part's option.
        option: Name of the run's option.
        made_with: Function that creates the part again with a given value of the option.
    """

    slot: str
    part: Any
    name: str
    option: str
    made_with: Callable[[object], object]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a trainer.

    Attributes:
        rollout: Plays the groups of episodes.
        rewards: Components of the reward, whose values are added.
        selector: Chooses the episodes of a group to train on.
        advantage: Turns rewards into advantages.
        terms: Terms of the loss.
        term_names: Names of the terms, in the same order.
        aggregation: Computes the weight of each row in the loss.
        correction: Computes weights of tokens that correct for differences between the engine and the trainer.
        sampler_factory: Creates the sampler from a source of problems (``None`` if the environment has none) and a
            seed.
        hooks: Callbacks.
        filled: The options of these parts that were filled in from options of the run.
    """

    rollout: Rollout
    rewards: list[Component]
    selector: Selector
    advantage: Advantage
    terms: list[Term]
    term_names: list[str]
    aggregation: Aggregation
    correction: Correction
    sampler_factory: Callable[[ProblemSource | None, int], Sampler]
    hooks: list[Hook]
    filled: list[FilledOption]

    def check(self, option: str, value: object) -> None:
        """Check that a new value of an option fits all parts that depend on the option (see ``follow``).

        Args:
            option: Name of the run's option.
            value: The value that a hook wants to set during the run.

        Raises:
            ConfigurationError: The value does not fit another option of a part.
        """
        for one in self.filled:
            if one.option == option:
                try:
                    one.made_with(value)
                except ConfigurationError as error:
                    raise ConfigurationError(
                        f"During the run, a hook sets the option {option} to {value}, but the part parts.{one.slot} "
                        f"does not accept this value: {error}"
                    ) from error

    def follow(self, option: str, value: object, slots: Collection[str]) -> None:
        """Update the options of parts that were filled in from an option of the run.

        Args:
            option: Name of the run's option, such as ``rollout.max_episode_tokens``.
            value: Its new value.
            slots: Slots whose parts are updated.
        """
        for one in self.filled:
            if one.option == option and one.slot in slots and hasattr(one.part, one.name):
                object.__setattr__(one.part, one.name, value)  # parts may be frozen


def make_parts(config: TrainConfig, *, shares_weights: bool | None = None) -> Parts:
    """Create every part that the options name.

    Args:
        config: Options of the run.
        shares_weights: Whether the engine uses the trainer's own weights; ``None`` determines it from the engine's
            class, which imports torch.

    Raises:
        UnknownNameError: The name of a part is unknown.
        ConfigurationError: A part does not accept its options, ``early_stop`` is on and the selector has no method
            ``settled``, or the groups are too small for the advantage.
    """
    parts = config.parts
    for slot, written in (("reward", parts.reward), ("loss", parts.loss)):
        if not written:
            raise ConfigurationError(
                f"parts.{slot} must name at least one part; `rstar2 list parts {slot}` lists them."
            )
    filled: list[FilledOption] = []

    def made(slot: str, part: Part) -> Any:
        part = typed_part(slot, part)
        result = _made(slot, part, config)
        filled.extend(_from_run(slot, part, result, lambda other: _made(slot, other, config)))
        return result

    def component(part: Part) -> Component:
        part = typed_part("reward", part)
        result = make_component(_filled(part, config))
        filled.extend(_from_run("reward", part, result.score, make_component))
        return result

    selector = made("selector", parts.selector)
    if config.rollout.early_stop and not isinstance(selector, Settles):
        raise ConfigurationError(
            "early_stop ends a group when the selector has enough episodes, but the selector "
            f"{parts.selector.name!r} cannot report this (it has no method `settled`): use another "
            "selector, or remove early_stop."
        )
    rollout = as_rollout(made("rollout", parts.rollout))
    rewards = [component(part) for part in parts.reward]
    check_waits(rollout, rewards, early_stop=config.rollout.early_stop, tail=config.rollout.tail)
    advantage = made("advantage", parts.advantage)
    check_group_size(advantage, config.rollout.group_size)
    return Parts(
        rollout=rollout,
        rewards=rewards,
        selector=selector,
        advantage=advantage,
        terms=[made("loss", part) for part in parts.loss],
        term_names=[part.name for part in parts.loss],
        aggregation=made("aggregation", parts.aggregation),
        correction=made("correction", correction_of(config, shares_weights)),
        sampler_factory=partial(_made_sampler, _filled(typed_part("sampler", parts.sampler), config)),
        hooks=[made("hook", part) for part in parts.hook],
        filled=filled,
    )


def correction_of(config: TrainConfig, shares_weights: bool | None = None) -> Part:
    """Return the correction of a run; ``"auto"`` depends on the run's engine (see ``PartOptions.correction``)."""
    part: Part = config.parts.correction
    if part.name != AUTO:
        return part
    if shares_weights is None:
        from rstar2_env.rollout.engines.registry import ENGINES

        shares_weights = ENGINES.get(config.rollout.engine).shares_weights
    # Episodes carried over from an earlier step were generated with older weights, by any engine.
    if shares_weights and config.rollout.tail != "carry":
        return Part("none")
    return typed_part("correction", Part("truncate", {"level": "token", **part.options}))


def typed_part(slot: str, part: Part) -> Part:
    """Return a part with its options checked and converted to their types, and with defaults for unset options.

    Args:
        slot: The field of ``parts`` that names the part.
        part: The part, before its options are checked.

    Raises:
        UnknownNameError: There is no part with that name.
        ConfigurationError: The part has no such option, or the value is invalid; the message has the full dotted name.
    """
    if slot == "correction" and part.name == AUTO:
        if part.options:
            typed_part(slot, Part("truncate", part.options))
        return part
    registry = FIELDS[slot]
    made_by = registry.get(part.name) if part.made_by is None else part.made_by
    what, prefix = f"{registry.kind} {part.name!r}", f"{_dotted(slot, part)}."
    paid = component_options(part.options, prefix=prefix) if slot == "reward" else {}
    own = {name: value for name, value in part.options.items() if name not in paid}
    if not is_factory(made_by):
        if own:
            raise ConfigurationError(
                f"The {what} is not a class, so it does not accept options such as {', '.join(own)}: omit "
                "the options, or write a class."
            )
        return Part(part.name, paid, made_by)
    known = part_options(made_by)
    given = GIVEN.get(slot, ())
    for name in given:
        if name in part.options:
            raise ConfigurationError(f"{prefix}{name} is set by the trainer and cannot be set as an option: omit it.")
    options = {**typed_options(what, made_by, own, prefix=prefix), **paid}
    defaults = {
        name: one.default
        for name, one in known.parameters.items()
        if isinstance(one.default, (bool, int, float, str)) and name not in options and name not in given
    }
    return Part(part.name, {**options, **defaults}, made_by)


def _dotted(slot: str, part: Part) -> str:
    """Return the prefix of a part's options on a command line."""
    return f"{slot}.{part.name}" if slot in LISTS else slot


def _filled(part: Part, config: TrainConfig) -> Part:
    """Fill in a part's unset options that it declares with ``FromRun``, from the options of the run."""
    options = dict(part.options)
    for name, source in _sources(part).items():
        options[name] = attrgetter(source)(config)
    return Part(part.name, options, part.made_by)


def _from_run(slot: str, part: Part, made: object, make: Callable[[Part], object]) -> list[FilledOption]:
    """Return a record of each option that ``_filled`` fills in.

    Args:
        slot: Slot of the part.
        part: The part as ``typed_part`` returned it, before its options are filled in.
        made: The object that was created from it.
        make: Creates the part again from other options.
    """

    def made_with(name: str, value: object) -> object:
        return make(Part(part.name, {**part.options, name: value}, part.made_by))

    return [FilledOption(slot, made, name, source, partial(made_with, name)) for name, source in _sources(part).items()]


def _sources(part: Part) -> dict[str, str]:
    """Return, for each unset option that the part declares with ``FromRun``, the run's option that fills it."""
    known = part_options(part.made_by).parameters if part.made_by and is_factory(part.made_by) else {}
    return {name: one.from_run for name, one in known.items() if one.from_run and part.options.get(name) is None}


def _made(slot: str, part: Part, config: TrainConfig) -> Any:
    """Create the object of a part that ``typed_part`` returned."""
    made_by = part.made_by
    assert made_by is not None  # typed_part looked it up
    kind = FIELDS[slot].kind
    if is_factory(made_by):
        options = _filled(part, config).options
        with part_named(kind, part):
            made = call_with_options(f"{kind} {part.name!r}", made_by, options, prefix=f"{_dotted(slot, part)}.")
    else:
        made = made_by
    _check_shape(slot, part.name, made)
    return made


def _check_shape(slot: str, name: str, made: Any) -> None:
    """Check, before a model is loaded, that a created part has the interface that its slot requires.

    Args:
        slot: Slot of the part.
        name: Name of the part, for error messages.
        made: The created part.
    """
    kind, arguments = FIELDS[slot].kind, _CALLED_WITH.get(slot)
    if slot == "hook" and not any(one == "bind" or one.startswith("on_") for one in dir(made)):
        raise ConfigurationError(
            f"The hook {name!r} does not have any of the methods that the trainer calls, such as "
            "on_step_end(args, state, control)."
        )
    if arguments is None:
        return
    expected = ", ".join(arguments)
    if not callable(made):
        raise ConfigurationError(f"The {kind} {name!r} cannot be called; it must be callable with ({expected}).")
    try:
        inspect.signature(made).bind(*arguments)
    except TypeError as error:
        raise ConfigurationError(f"The {kind} {name!r} must be callable with ({expected}): {error}.") from error
    except ValueError:  # a callable that is not written in Python may have no signature
        pass
    if lacking := [one for one in _HAS.get(slot, ()) if not hasattr(made, one)]:
        raise ConfigurationError(
            f"The {kind} {name!r} has no attribute {' and no '.join(map(repr, lacking))}; "
            "docs/part-interfaces.md#a-loss describes the interface."
        )


def _made_sampler(part: Part, problems: ProblemSource | None, seed: int) -> Sampler:
    made_by = part.made_by
    assert made_by is not None  # typed_part looked it up
    ids = problems.ids if isinstance(problems, FiniteSource) else None
    given = given_to(made_by, {"ids": ids, "seed": seed, "problems": problems})
    with part_named(FIELDS["sampler"].kind, part):
        made: Sampler = call_with_options(f"sampler {part.name!r}", made_by, {**given, **part.options})
    return made
