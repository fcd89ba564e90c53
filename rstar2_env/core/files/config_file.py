"""Configuration files: one loader of TOML, YAML and JSON for every command.

Covered: a file that is one mapping of names to values, and errors that name the file and the line. Not covered: the
meaning of the values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError, MissingExtraError, Rstar2Error

SUFFIXES = (".toml", ".yaml", ".yml", ".json")
"""File-name suffixes of configuration files."""
_MOST_VALUES, _MOST_REPEATED = 100_000, 10
"""Limits on the number of values in a YAML file, where each repetition by an alias counts: ``_MOST_VALUES``, or
``_MOST_REPEATED`` times the number of values that the file spells out, whichever is larger."""
_FLOAT = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)[eE][-+]?\d+")


def read_mapping(path: str | Path, *, of_run: bool = False) -> FileOptions:
    """Read a configuration file, and return its mapping of names to values, together with the file's path.

    Args:
        path: A file whose name ends in one of ``SUFFIXES``, which determines its format.
        of_run: Whether a run wrote the file, so that its text is not the user's own (``rstar2_env.core.trust``).

    Raises:
        ConfigurationError: The file cannot be read, or is not a mapping in its format; the message names the file and
            the line.
        MissingExtraError: The file is YAML, and PyYAML is not installed.
    """
    file = Path(path)
    load = _LOADERS.get(file.suffix.lower())
    if load is None:
        raise ConfigurationError(
            f"The configuration file {path} must have a name that ends in one of {', '.join(SUFFIXES)}."
        )
    try:
        with open(file, "rb") as opened:
            found = load(opened)
    except OSError as error:
        raise ConfigurationError(f"The configuration file {path} cannot be read: {error.strerror}.") from error
    except _InvalidError as error:
        raise ConfigurationError(f"The configuration file {path} is not valid {error}.") from error.__cause__
    if found is None:
        return FileOptions({}, path)
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ConfigurationError(f"The configuration file {path} must contain one mapping of names to values.")
    if not of_run:
        trust.own_file(file, found)
    return FileOptions(found, path)


class FileOptions(dict[str, Any]):
    """The options in a file, with the file's path, so that an error about one of them can name the file.

    Args:
        options: The options, as written.
        path: The file, as the user named it.
    """

    def __init__(self, options: Mapping[str, Any], path: str | Path) -> None:
        super().__init__(options)
        self._path = path

    def note(self, names: Iterable[str]) -> str:
        """Return a note which says that the file contains the options ``names``; empty if there are no names."""
        written = ", ".join(names)
        return f"The file {self._path} contains {written}." if written else ""


def _leaves(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_named(full: str, value: Any, message: str) -> bool:
    """Whether a message begins with an option's name, or quotes its name or its value.

    The message may shorten the full name (``a.b.c``) to its last parts (``b.c``), or name an option within the option
    (``a.b.c.d``).
    """
    parts = full.split(".")
    ends = "|".join(re.escape(".".join(parts[at:])) for at in range(len(parts)))
    return re.search(rf"""(?:^|['"])(?:{ends})(?!\w)""", message) is not None or (
        isinstance(value, str) and len(value) > 1 and repr(value) in message
    )


def _overlap(one: str, other: str) -> bool:
    """Whether two full names are the same, or one option contains the other: ``a.b`` and ``a.b.c``."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


@contextmanager
def naming_files(layers: Sequence[Mapping[str, Any]], full_name: Callable[[str], str] = str) -> Iterator[None]:
    """Within the ``with`` block, add a note to each error about an option: the file that contains the option.

    Args:
        layers: Mappings of the options that are checked within the ``with`` block; the options from a file are in a
            ``FileOptions``. Later mappings override earlier ones.
        full_name: Returns the full name of an option; equal full names in two mappings stand for the same option.
    """
    try:
        yield
    except Rstar2Error as error:
        message = str(error)
        # A message that begins with a flag is about the command line, which overrides files.
        later, blamed, notes = set[str](), list[str](), list[str]()
        for layer in reversed(layers) if not message.startswith("-") else ():
            full = {name: full_name(name) for name, _ in _leaves(layer)}
            named = [name for name, value in _leaves(layer) if _is_named(full[name], value, message)]
            own = [
                name
                for name in named
                if full[name] not in later and not any(_overlap(full[name], one) for one in blamed)
            ]
            if isinstance(layer, FileOptions) and (note := layer.note(own)):
                notes.insert(0, note)
            later.update(full.values())
            blamed += [full[name] for name in named]
        for note in notes:
            error.add_note(note)
        raise


class _InvalidError(Exception):
    """The text of a file is invalid; the message gives the format and the line."""


def _toml(file: IO[bytes]) -> Any:
    import tomllib

    try:
        return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _InvalidError(f"TOML: {error}") from error


def _json(file: IO[bytes]) -> Any:
    try:
        return json.load(file, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _InvalidError(f"JSON: {error}") from error


def _yaml(file: IO[bytes]) -> Any:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise MissingExtraError("yaml", "A YAML configuration") from error
    parts = {"compose_mapping_node": _composed_once, "get_single_node": _counted}
    loader: Any = type("_Loader", (yaml.SafeLoader,), parts)
    # YAML 1.1 reads 1e-6 as text, since it has no decimal point; the other formats read a number.
    loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
    try:
        return yaml.load(file, loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _InvalidError(f"YAML: {' '.join(str(error).split())}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {name!r} is listed twice")
        found[name] = value
    return found


def _composed_once(loader: Any, anchor: Any) -> Any:
    """Parse a YAML mapping, but refuse a repeated name; YAML itself would use the last value."""
    import yaml

    node = yaml.SafeLoader.compose_mapping_node(loader, anchor)
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the name {key.value!r} is listed twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
    return node


def _counted(loader: Any) -> Any:
    """Parse a YAML document; refuse it if its aliases repeat values so often that reading would take too long."""
    import yaml

    root = yaml.SafeLoader.get_single_node(loader)
    sizes: dict[int, float] = {}

    def size(node: Any) -> float:
        if id(node) not in sizes:
            if isinstance(node, yaml.MappingNode):
                inner = [one for pair in node.value for one in pair]
            else:
                inner = node.value if isinstance(node, yaml.SequenceNode) else []
            sizes[id(node)] = math.inf  # while it is counted: a node that contains itself has no end
            sizes[id(node)] = 1 + sum(map(size, inner))
        return sizes[id(node)]

    whole = 0 if root is None else size(root)
    if whole > (most := max(_MOST_VALUES, _MOST_REPEATED * len(sizes))):
        raise yaml.MarkedYAMLError(
            problem=f"it has more than {most} values, because aliases repeat them", problem_mark=root.start_mark
        )
    return root


_LOADERS: dict[str, Callable[[IO[bytes]], Any]] = {".toml": _toml, ".json": _json, ".yaml": _yaml, ".yml": _yaml}
