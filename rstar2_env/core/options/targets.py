"""The options that a function, a class or a dataclass accepts: names, annotations, rules and defaults.

Covered: annotations that are strings, and those that cannot be resolved (which allow any value); classes whose
``__init__`` passes ``**options`` on to the next base class; dataclasses. Not covered: the handling of the values
(``rstar2_env.core.options.declare``).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from rstar2_env.core.options.rules import NO_RULE, FromRun, Rule, is_valid, unannotated

RULE = "rule"
"""Key under which the metadata of a dataclass field holds the field's ``Rule``."""
MORE_OPTIONS = "more_options"
"""Name of a class method that returns other functions or classes whose options the class also accepts."""

_FOUND: WeakKeyDictionary[Callable[..., Any], Options] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One option of a function, a class or a dataclass.

    Attributes:
        name: Name of the option.
        hint: Annotation of the option, without ``Annotated``; ``Any`` if there is none.
        rule: Constraints beyond the annotation.
        required: Whether it has no default.
        default: Default of the option, if it has one.
        from_run: Option of the run that supplies the value if the user does not set it, such as
            ``rollout.max_episode_tokens``; empty if there is none.
    """

    name: str
    hint: Any
    rule: Rule
    required: bool
    default: Any
    from_run: str = ""

    def admits(self, value: Any) -> bool:
        """Whether a value is valid for the option; the option's default is always valid."""
        return value is self.default or is_valid(value, self.hint, self.rule)


@dataclass(frozen=True, slots=True)
class Options:
    """All options of a function, a class or a dataclass.

    Attributes:
        parameters: Each option by its name, in order of declaration.
        open: Whether options with other names are allowed too.
    """

    parameters: Mapping[str, Parameter]
    open: bool


def options_of(target: Callable[..., Any]) -> Options:
    """Return the options of a function, a class or a dataclass.

    The options of a class whose ``__init__`` takes ``**options`` include the options of its bases.
    """
    if not isinstance(target, (type, types.FunctionType)):
        return _find(target)
    found = _FOUND.get(target)
    if found is None:
        found = _FOUND[target] = _find(target)
    return found


def _find(target: Callable[..., Any]) -> Options:
    if not isinstance(target, type):
        return _of_function(target)
    found: dict[str, Parameter] = {}
    open_ended = False
    for kind in target.__mro__:
        if "__init__" not in vars(kind) or kind is object:
            continue
        one = _of_record(kind) if _is_record(kind) else _of_function(vars(kind)["__init__"], bound=True)
        found = {**found, **one.parameters, **found}  # own options override those of bases
        open_ended = one.open
        if not open_ended:
            break
    else:
        if not found:
            return _of_function(target)
    for more in getattr(target, MORE_OPTIONS, tuple)():
        found = {**found, **options_of(more).parameters, **found}
    return Options(found, open_ended)


def _is_record(kind: type) -> bool:
    made = vars(kind).get("__dataclass_params__")
    return made is not None and bool(made.init)


def _of_record(kind: type[Any]) -> Options:
    """Return the options of a dataclass: its fields."""
    found: dict[str, Parameter] = {}
    scopes = {name: owner for owner in reversed(kind.__mro__) for name in vars(owner).get("__annotations__", ())}
    for field in dataclasses.fields(kind):
        if field.init:
            hint = resolved(field.type, _names_of(scopes.get(field.name, kind)))
            default = field.default if field.default_factory is dataclasses.MISSING else None
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            found[field.name] = _parameter(field.name, hint, field.metadata.get(RULE, NO_RULE), required, default)
    return Options(found, open=False)


def _of_function(function: Callable[..., Any], *, bound: bool = False) -> Options:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C, without a signature
        return Options({}, open=True)
    parameters = list(signature.parameters.values())[bound:]
    names = _names_of(function)
    found: dict[str, Parameter] = {}
    for one in parameters:
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            required = one.default is one.empty
            hint = resolved(one.annotation, names)
            found[one.name] = _parameter(one.name, hint, NO_RULE, required, None if required else one.default)
    return Options(found, any(one.kind is one.VAR_KEYWORD for one in parameters))


def _parameter(name: str, hint: Any, rule: Rule, required: bool, default: Any) -> Parameter:
    notes = getattr(hint, "__metadata__", ())
    from_run = next((note.option for note in notes if isinstance(note, FromRun)), "")
    hint, rule = unannotated(hint, rule)
    return Parameter(name, hint, rule, required, default, from_run)


def resolved(annotation: Any, names: Mapping[str, Any]) -> Any:
    """Evaluate an annotation that is a string; return ``Any`` if a name in it is unknown at run time."""
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, dict(names), include_extras=True)["it"]
    except Exception:  # evaluating an annotation may raise anything
        return Any


def _names_of(target: Any) -> Mapping[str, Any]:
    """Return the namespace in which the annotations of a function or a class are evaluated."""
    if isinstance(target, type):
        module = sys.modules.get(target.__module__)
        return {**(vars(module) if module else {}), **vars(target), target.__name__: target}
    while isinstance(target, functools.partial):
        target = target.func
    if isinstance(target, type):
        target = target.__init__  # type: ignore[misc]  # only to find its module's names
    function = inspect.unwrap(target)
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function):
        function = getattr(type(function), "__call__", function)  # noqa: B004  # the method, not whether there is one
    names: Mapping[str, Any] = getattr(function, "__globals__", {})
    return names
