"""The notation of a part (a replaceable component, such as a wrapper) with options, for configurations and commands.

A part is written as ``name``, ``name:key=value,key2=a+b`` (a list joined by ``+``), ``["name", {...}]``, or
``{"name": ..., key: value}``, as in a TOML table. Brackets, braces and quotes protect their content, so a value may be
JSON (``rate={"lost": 0.1}``), and an item of a list may be a part with options
(``(tool_use:each=0.1)+answer_format``). The name may refer to user code: see ``user_code``. The signature
of the part determines the types of the values: see ``declare``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options, parse_options
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.text import Written, read_loosely, split_list, split_parts, without_brackets

T = TypeVar("T")

_WITH_OPTIONS = re.compile(r"(?P<name>.*?):(?P<options>[^\W\d][\w.]*=.*)", re.DOTALL)
_OPTION = re.compile(r"[\w.-]+=(.*)", re.DOTALL)
_BARE = re.compile(r"[^\s,+\"()\[\]{}][^,+\"()\[\]{}]*")


@dataclass(frozen=True, slots=True)
class Part:
    """A replaceable part, such as a wrapper or an agent, given by name or as an object, with its options.

    Attributes:
        name: Name of the part, or of the class or function that was given directly.
        options: Options of the part.
        made_by: The class or function that was given directly; ``None`` if the part was given by name.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    made_by: Callable[..., Any] | None = None

    def __str__(self) -> str:
        """Return the part in the text notation, from which ``read_part`` reads the same part."""
        return write_part(self.name, self.options)


PartSpec: TypeAlias = str | Part | Mapping[str, Any] | Sequence[Any] | Callable[..., Any]
"""A part in any of its notations: text, a table, ``[name, options]``, or the class or function itself."""


def read_part(written: PartSpec, kind: str = "part") -> Part:
    """Convert a part in any of its notations to a ``Part``.

    Args:
        written: See ``PartSpec``.
        kind: Kind of the part, for error messages ("wrapper").

    Raises:
        ConfigurationError: ``written`` is in none of the notations; the message shows it.
    """
    if isinstance(written, Part):
        return written
    if isinstance(written, str):
        name, options = split_part(without_brackets(written))
        return Part(_named(name, written, kind), _parsed(options, written, kind))
    if isinstance(written, Mapping):
        table = dict(written)
        return Part(_named(table.pop("name", None), written, kind), _checked(table, written, kind))
    if isinstance(written, Sequence):
        more: Any = {} if len(written) == 1 else written[1] if len(written) == 2 else None
        if not isinstance(more, Mapping):
            raise ConfigurationError(
                f"A {kind} that is given as a list must have the form [name, options]; got {written!r}."
            )
        inner = read_part(written[0], kind)
        return Part(inner.name, {**inner.options, **_checked(dict(more), written, kind)}, inner.made_by)
    if callable(written):
        return Part(getattr(written, "__qualname__", type(written).__qualname__), {}, written)
    raise ConfigurationError(
        f"A {kind} must be given as name:option=value,..., as a table with a name, or as [name, options]; got "
        f"{written!r}."
    )


def parts_within(value: Any, seen: set[str] | None = None) -> Iterator[Part]:
    """Yield every part that a value may name, as a text or a table and at any depth, each with its options.

    Each item of a list is read as a part, even if the list could be the notation ``[name, options]`` of one part.

    Args:
        value: A text, such as an option as it was typed (``tools=python+mcp:./server.py``), or mappings and lists.
        seen: Texts to leave out; this call adds the texts that it reads.
    """
    seen = set() if seen is None else seen
    inner: list[Any] = []
    if isinstance(value, (list, tuple)):
        inner += value
    elif isinstance(value, Mapping) or (isinstance(value, str) and value not in seen):
        if isinstance(value, str):
            seen.add(value)
            inner += _within_text(value)
        else:
            inner += value.values()
        with contextlib.suppress(ConfigurationError):
            part = read_part(value)
            inner += part.options.values()
            yield part
    for one in inner:
        yield from parts_within(one, seen)


def _within_text(text: str) -> list[Any]:
    """Return the values in a text that may name parts.

    For JSON, return the parsed value; for other texts, the text itself, the items of a list, and an option's value.
    """
    with contextlib.suppress(ValueError, RecursionError):
        return [json.loads(text)]
    option = _OPTION.fullmatch(text)
    return [without_brackets(text.strip()), *split_parts(text), *split_list(text), *([option[1]] if option else [])]


def make_part(registry: Registry[Callable[..., T]], written: PartSpec, **given: Any) -> T:
    """Create a part: find it by name, parse and check its options, and call it with the options.

    Args:
        registry: The registry that has the part's name.
        written: See ``PartSpec``.
        **given: Additional options; options in ``written`` override them.

    Raises:
        UnknownNameError: There is no part with that name.
        ConfigurationError: ``written`` is in none of the notations, or an option is invalid.
    """
    part = read_part(written, registry.kind)
    made_by: Callable[..., T] = registry.get(part.name) if part.made_by is None else part.made_by
    with part_named(registry.kind, part):
        return call_with_options(f"{registry.kind} {part.name!r}", made_by, {**given, **part.options})


@contextlib.contextmanager
def part_named(kind: str, part: Part) -> Iterator[None]:
    """Within the ``with`` block, add the part, as the user wrote it, to the messages of errors about its options.

    Args:
        kind: Kind of the part ("wrapper").
        part: The part that is constructed.

    Raises:
        ConfigurationError: The block raised a ``ConfigurationError``.
    """
    try:
        yield
    except ConfigurationError as error:
        message = str(error.args[0]) if error.args else ""
        if repr(part.name) in message:
            raise
        named = f"The {kind} {str(part)!r}: {message}"
        raise ConfigurationError(named, option=error.option, value=error.value) from error


def write_part(name: str, options: Mapping[str, Any]) -> str:
    """Return a part in the text notation, from which ``read_part`` reads the same name and options."""
    return name + (":" if options else "") + ",".join(_pairs(options))


def split_part(text: str) -> tuple[str, list[str]]:
    """Split a part's text into its name and its options: ``"a:b=1,c=2"`` becomes ``"a", ["b=1", "c=2"]``."""
    match = _WITH_OPTIONS.fullmatch(text)
    return (text, []) if match is None else (match["name"], split_list(match["options"]))


def _named(name: object, written: object, kind: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(
            f"The {kind} {written!r} does not have a name: expected name:option=value,... or a table with a name."
        )
    return name.strip()


def _parsed(options: Sequence[str], written: str, kind: str) -> dict[str, Any]:
    try:
        return parse_options(options)
    except ConfigurationError as error:
        raise ConfigurationError(f"The {kind} {written!r}: {error}") from error


def _checked(options: dict[Any, Any], written: object, kind: str) -> dict[str, Any]:
    for name in options:
        if not isinstance(name, str):
            raise ConfigurationError(f"The {kind} {written!r} has an option whose name is not a string: {name!r}.")
    return options


def _pairs(options: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping) and _has_text(value):
            yield from _pairs(value, f"{prefix}{name}.")  # as written: the text is not parsed yet
        else:
            yield f"{prefix}{name}={_value(value)}"


def _has_text(value: Any) -> bool:
    return any(map(_has_text, value.values())) if isinstance(value, Mapping) else isinstance(value, Written)


def _value(value: Any) -> str:
    if isinstance(value, Written):
        return str(value)
    if not isinstance(value, str):
        # An object has no text form; name its class.
        return json.dumps(value, default=lambda found: getattr(found, "__qualname__", type(found).__qualname__))
    return value if _BARE.fullmatch(value) and read_loosely(Written(value)) == value else json.dumps(value)


def make_inner(registry: Registry[Any], written: Any) -> Any:
    """Create a part that is an option of another part; an object that is already a part is returned unchanged.

    Args:
        registry: The registry that has the part's name.
        written: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``, a table, a class, a function, or the part.

    Raises:
        ConfigurationError: The part does not accept the options.
        UnknownNameError: There is no part with that name.
    """
    part = read_part(written, registry.kind)
    found = part.made_by or registry.get(part.name)
    if is_factory(found):
        return make_part(registry, part)
    if part.options:
        raise ConfigurationError(
            f"The {registry.kind} {part.name!r} is not a class, so it does not accept options such as "
            f"{', '.join(part.options)}: omit the options."
        )
    return found


def is_factory(made_by: Any) -> bool:
    """Whether an object is a class or a factory function of a part, rather than the part itself.

    A class, or a function that can be called without arguments, creates a part. A function that requires arguments is
    the part itself.
    """
    if isinstance(made_by, functools.partial):
        return is_factory(made_by.func)
    if inspect.isclass(made_by):
        return True
    if not inspect.isroutine(made_by):
        return False
    try:
        parameters = inspect.signature(made_by).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return not any(one.kind in positional and one.default is one.empty for one in parameters)
