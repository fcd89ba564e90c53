"""Options of dataclasses and functions: declaring them, reading them from text (``level=3``) and checking them.

A dataclass declares its options as fields; a function declares them as parameters. The annotation gives the type, and
a ``Rule`` gives further constraints::

    @dataclass(frozen=True)
    class Limits(CheckedOptions):
        wall_s: float = option(5.0, above=0, unit="seconds")

    @checked
    def play(env: str, *, workers: Annotated[int, Rule(least=1)] = 4) -> None: ...

Covered: types, ranges, choices, unknown and missing names, text that is parsed by annotation. Not covered: options that
depend on each other; a dataclass checks such options in its ``__post_init__``.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ParamSpec, TypeAlias, TypeVar, cast, get_args

from rstar2_env.core.errors import ConfigurationError, UnknownOptionError
from rstar2_env.core.options.bounds import check_count
from rstar2_env.core.options.renamed import RENAMED, with_new_names
from rstar2_env.core.options.rules import (
    NO_RULE,
    Rule,
    dict_in_text,
    did_you_mean,
    is_mapping,
    is_record,
    is_valid,
    members,
    refusal,
    says_nothing,
)
from rstar2_env.core.options.targets import RULE, Options, Parameter, options_of
from rstar2_env.core.options.text import Typed, UnreadableError, Written, read, read_loosely

__all__ = [
    "CheckedOptions",
    "Count",
    "Rule",
    "Seconds",
    "Seed",
    "Written",
    "call_with_options",
    "check_option",
    "check_options",
    "checked",
    "nested_options",
    "option",
    "parse_options",
    "read_loosely",
    "typed_options",
]

P = ParamSpec("P")
T = TypeVar("T")

Count: TypeAlias = Annotated[int, Rule(least=1)]
"""Type of an option that is a count of at least 1."""
Seed: TypeAlias = Annotated[int, Rule(least=0)]
"""Type of an option that is a random seed: at least 0, as NumPy requires."""
Seconds: TypeAlias = Annotated[float, Rule(above=0, unit="seconds")]
"""Type of an option that is a time limit in seconds."""

_MANY_NAMES = 30


_ABSENT: Any = dataclasses.MISSING


def option(
    default: T = _ABSENT,
    *,
    factory: Callable[[], T] = _ABSENT,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Sequence[Any] = (),
    unit: str = "",
    finite: bool = True,
    repr: bool = True,
) -> T:
    """Declare a field of a dataclass of options, with constraints and either a default or a factory.

    Args:
        default: The default, which is valid even if it violates the constraints.
        factory: Creates the default, for mutable values such as a list.
        least: Smallest number; for a text or a list, the smallest length.
        most: Largest number; for a text or a list, the largest length.
        above: A number must be larger than this.
        below: A number must be smaller than this.
        choices: All valid values.
        unit: Unit of a number ("seconds"), for the error message.
        finite: Whether to refuse infinities; NaN is always refused.
        repr: Whether the dataclass's ``repr`` shows the field.
    """
    rule = Rule(least, most, above, below, tuple(choices), unit, finite)
    values: dict[str, Any] = {"default": default, "default_factory": factory}
    return cast(T, dataclasses.field(**values, repr=repr, metadata={RULE: rule}))


class CheckedOptions:
    """Base class of dataclasses of options: checks every field on construction.

    A dataclass with ``slots=True`` must call ``check_options`` in its own ``__post_init__``.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ConfigurationError: A value has the wrong type, is out of its range, or is not one of its choices.
        """
        check_options(self)


def check_options(record: Any, prefix: str = "", *, passed_on: bool = False) -> None:
    """Check every field of a dataclass against its annotation and its rule.

    Unparsed text is parsed. If the annotation requires it, a list becomes a tuple, and a dict a dataclass instance.

    Args:
        record: An instance of the dataclass, frozen or not.
        prefix: Prefix of the names in messages ("Limits.").
        passed_on: Whether text in a field without a declared type stays unparsed, so that the part that receives the
            text can parse it.

    Raises:
        ConfigurationError: A value has the wrong type, is out of its range, or is not one of its choices.
    """
    # A subclass with an __init__ of its own has the fields of the dataclass that it extends.
    kind = next(kind for kind in type(record).__mro__ if "__dataclass_fields__" in vars(kind))
    known = options_of(kind).parameters
    for name in (field.name for field in dataclasses.fields(record) if field.init):
        given = getattr(record, name)
        if given is known[name].default:
            continue
        value = _fitted(prefix + name, given, known[name], passed_on=passed_on)
        if value is not given:
            object.__setattr__(record, name, value)


def check_option(name: str, value: Any, hint: Any, rule: Rule = NO_RULE) -> None:
    """Check one value against a type and a rule given at run time.

    Args:
        name: The option, as the user wrote it.
        value: The given value.
        hint: The type that the value must have.
        rule: Constraints beyond the type.

    Raises:
        ConfigurationError: The value is invalid.
    """
    if not is_valid(value, hint, rule):
        raise ConfigurationError(refusal(name, hint, rule, value))


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator that checks a function's arguments by their annotations, and parses arguments given as text.

    An invalid value raises a ``ConfigurationError``. So does an unknown argument: the message suggests the nearest
    name and lists all names.
    """
    positions = _positions(function)

    @functools.wraps(function)
    def with_checks(*args: P.args, **kwargs: P.kwargs) -> T:
        own = options_of(function)
        values = [
            _fitted(name, value, own.parameters[name], passed_on=True) if name in own.parameters else value
            for name, value in zip(positions, args, strict=False)
        ]
        given: Mapping[str, Any] = kwargs
        if not RENAMED.keys().isdisjoint(given):
            given = with_new_names(given, own.parameters)
        named = {name: _fitted(name, value, own.parameters.get(name), passed_on=True) for name, value in given.items()}
        if not own.open and any(name not in own.parameters for name in named):
            holder = type(args[0]) if positions[:1] == ("self",) and args else function
            _refuse_unknown(holder.__name__, named, options_of(holder))
        return cast(Callable[..., T], function)(*values, *args[len(values) :], **named)

    return with_checks


def _positions(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD))


def parse_options(written: Iterable[str], *, flag: str = "") -> dict[str, Any]:
    """Split ``name=value`` pairs. Dotted names become dicts: ``limits.wall_s=2`` gives ``{"limits": {"wall_s": "2"}}``.

    Values remain text (``Written``), to be parsed later: according to the annotations of a function or class
    (``typed_options``, ``call_with_options``), or without annotations (``read_loosely``).

    Args:
        written: The ``name=value`` pairs.
        flag: Text that precedes each pair on the command line (``"--set env."``), for error messages about the options.

    Raises:
        ConfigurationError: A pair is not ``name=value``, or a name is repeated.
    """
    options: dict[str, Any] = {}
    for pair in written:
        name, sign, value = pair.partition("=")
        path = [part.strip() for part in name.split(".")]
        if not sign or not all(part.isidentifier() for part in path):
            raise ConfigurationError(f"Expected an option as name=value, got {flag + pair!r}.")
        holder = options
        for part in path[:-1]:
            holder = holder.setdefault(part, {})
            if not isinstance(holder, dict):
                raise ConfigurationError(
                    f"The option {part!r} is given twice, as a whole and in part as {flag + name.strip()!r}: "
                    "omit one of them."
                )
        if path[-1] in holder:
            raise ConfigurationError(f"The option {flag + name.strip()!r} is given twice: omit one of them.")
        holder[path[-1]] = Written(value, f"{flag}{name.strip()}" if flag else "")
    return options


def typed_options(
    what: str, target: Callable[..., Any], options: Mapping[str, Any], *, prefix: str = ""
) -> dict[str, Any]:
    """Return the options for ``target``, with text parsed and every value checked against the target's annotations.

    Args:
        what: Names the target in messages ("agent 'oracle'").
        target: A function, a class or a dataclass. A class whose ``__init__`` takes ``**options`` also accepts the
            options of its bases, and of the targets that its class method ``more_options`` returns.
        options: The user's options; nested dicts for dotted names.
        prefix: Prefix of the names in messages ("selector.").

    Raises:
        ConfigurationError: An option is unknown (the message suggests the nearest, and lists all options), or its value
            is invalid.
    """
    known = options_of(target)
    options = with_new_names(options, known.parameters)
    _refuse_unknown(what, options, known, prefix)
    return {name: _fitted(prefix + name, value, known.parameters.get(name)) for name, value in options.items()}


def nested_options(name: str, value: Any) -> dict[str, Any]:
    """Return the value of an option that holds another part's options, as a dict whose string values are left unparsed.

    Raises:
        ConfigurationError: The option is neither a dict nor a JSON object.
    """
    found = value
    if isinstance(value, Written):
        try:
            found = read(value, dict, lambda kind, one: _record(name, kind, one))
        except UnreadableError:
            found = None
    if not isinstance(found, Mapping):
        raise ConfigurationError(f"{name} must be a dict, not {value!r}.{dict_in_text(name)}")
    return dict(found)


def call_with_options(what: str, function: Callable[..., T], options: Mapping[str, Any], *, prefix: str = "") -> T:
    """Call ``function(**options)`` with the options typed and checked by ``typed_options``.

    Args:
        what: Name of the part in messages ("agent 'oracle'").
        function: Function that accepts its options by name.
        options: The user's options.
        prefix: Prefix of the names in messages ("selector.").

    Raises:
        ConfigurationError: An option is unknown, its value is invalid, or a required one is missing.
    """
    typed = typed_options(what, function, options, prefix=prefix)
    known = options_of(function)
    missing = [prefix + one.name for one in known.parameters.values() if one.required and one.name not in typed]
    if missing and not known.open:
        raise ConfigurationError(f"The {what} needs {' and '.join(missing)}.{_listing(known)}")
    return function(**typed)


def _fitted(name: str, value: Any, parameter: Parameter | None, *, passed_on: bool = False) -> Any:
    """Return the value of an option, parsed if it is text, and checked.

    Args:
        name: The option, as the user wrote it.
        value: The given value.
        parameter: The declaration of the option; ``None`` for an unknown option.
        passed_on: Whether the text of an unknown option stays unparsed, so that the part that receives the text can
            parse it; otherwise ``read_loosely`` parses it.
    """
    if parameter is None:
        return value if passed_on else read_loosely(value)
    hint = parameter.hint
    shown = (isinstance(value, Typed) and value.typed) or name
    if isinstance(value, Written) and str(value) in parameter.rule.choices:
        value = str(value)  # a choice that is also a word for None keeps its meaning as a choice
    elif isinstance(value, Written):
        try:
            value = read(value, hint, lambda kind, found: _record(shown, kind, found))
        except UnreadableError:
            raise ConfigurationError(refusal(shown, hint, parameter.rule, value)) from None
    elif isinstance(value, Typed):
        value = str(value)
    if isinstance(value, Mapping):
        value = _nested(shown, value, hint, passed_on=passed_on)
    elif isinstance(value, list) and any(isinstance(member, type) and member is tuple for member in _kinds(hint)):
        value = tuple(value)
    if not parameter.admits(value):
        raise ConfigurationError(refusal(shown, hint, parameter.rule, value))
    if parameter.rule.most is None and parameter.rule.below is None:
        check_count(name, value, written=shown)
    return value


def _kinds(hint: Any) -> list[Any]:
    return [getattr(member, "__origin__", member) for member in members(hint)]


def _nested(name: str, value: Mapping[str, Any], hint: Any, *, passed_on: bool) -> Any:
    """Convert a dict to a dataclass instance, or parse and check its values, if the annotation requires it."""
    if says_nothing(hint):
        return value if passed_on else read_loosely(value)
    record = next((member for member in members(hint) if is_record(member)), None)
    mapping = any(map(is_mapping, members(hint)))
    if record is not None and not isinstance(value, record):
        # If the annotation allows a dict, keep the dict: it can be written into a file unchanged.
        return _record(name, record, value, typed_options if mapping else call_with_options)
    if mapping and any(isinstance(one, (Written, Mapping)) for one in value.values()):
        inner = next(get_args(member)[1:] for member in members(hint) if is_mapping(member))
        known = inner and not says_nothing(inner[0])
        each = Parameter(name, inner[0], NO_RULE, False, None) if known else None
        return {key: _fitted(f"{name}.{key}", one, each, passed_on=passed_on) for key, one in value.items()}
    return value


def _record(name: str, kind: type, found: Mapping[str, Any], make: Callable[..., Any] = call_with_options) -> Any:
    return make(f"option {name!r}", kind, found, prefix=f"{name}.")


def _refuse_unknown(what: str, given: Mapping[str, Any], known: Options, prefix: str = "") -> None:
    if known.open:
        return
    for name in given:
        if name not in known.parameters:
            near = did_you_mean(name, known.parameters)
            shown = getattr(given[name], "typed", "") or repr(prefix + name)
            raise UnknownOptionError(f"The {what} has no option {shown}.{near}{_listing(known, short=bool(near))}")


def _listing(known: Options, *, short: bool = False) -> str:
    names = ", ".join(known.parameters)
    return "" if short and len(known.parameters) > _MANY_NAMES else f" It takes: {names or 'none'}."
