"""Parses a source of problems, as written on a command line or in a configuration, into its name and options.

Covered: the notation of all parts (``rstar2_env.core.options.parts``), except that the name of an existing file always
means that file; short forms of ``columns``; JSON objects; the files that a source names. Not covered: the meaning of
the options (see ``load``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import parse_options, read_loosely
from rstar2_env.core.options.parts import split_part
from rstar2_env.problems.catalog import NAMED_SETS
from rstar2_env.problems.families import FAMILIES
from rstar2_env.problems.records import FIELDS


def split_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Split a source into its name and its options: ``"a.csv:question=problem,limit=5"`` has two options.

    ``question=``, ``answer=``, ``id=`` and ``source=`` are short for ``columns={...}``. The name of an existing file is
    never split, whatever characters it contains.

    Raises:
        ConfigurationError: An option is not ``name=value``, or is given twice.
    """
    name, written = split_part(spec)
    if not written or _exists(spec):
        return spec, {}
    options = parse_options(written)
    columns = {name: str(options.pop(name)) for name in FIELDS if name in options}
    if columns:
        written = read_loosely(options.get("columns", {}))
        options["columns"] = {**(written if isinstance(written, Mapping) else {}), **columns}
    return name, options


def json_spec(text: str) -> Mapping[str, Any]:
    """Parse a source that is written as a JSON object.

    Raises:
        ConfigurationError: The text is not a JSON object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"The source {text[:80]!r} must be written as a JSON object, but it is not valid JSON: {error}."
        ) from error
    assert isinstance(value, Mapping)  # it begins with a brace
    return value


def located(spec: str | Mapping[str, Any], find: Callable[[str], Path | str | None]) -> str | Mapping[str, Any]:
    """Replace the file names in a source with paths: ``"x.jsonl:holdout=0.1"`` becomes ``"/data/x.jsonl:holdout=0.1"``.

    Args:
        spec: A source as ``load_problems`` accepts it, as text or as a mapping.
        find: Maps the name of a file to its path; if it returns ``None``, the name stays. It is not called for
            families, named data sets and data sets on a hub.

    Raises:
        ConfigurationError: The text starts like a JSON object but is not one.
    """
    if isinstance(spec, Mapping):
        found = dict(spec)
        if isinstance(path := spec.get("path"), str):
            found["path"] = str(find(path) or path)
        if isinstance(inner := spec.get("spec"), (str, Mapping)):
            found["spec"] = located(inner, find)
        if isinstance(parts := spec.get("mix"), (list, tuple)):
            found["mix"] = [located(one, find) if isinstance(one, (str, Mapping)) else one for one in parts]
        return found
    if spec.lstrip().startswith("{"):
        return json.dumps(located(json_spec(spec), find))
    name, written = split_part(spec)
    is_set = name.startswith("hf:") or (name in NAMED_SETS and not _exists(name))
    if is_set or spec.partition(":")[0] in FAMILIES:
        return spec
    if (whole := find(spec)) is not None:
        return str(whole)
    found_file = find(name) if written else None
    return spec if found_file is None else f"{found_file}{spec.removeprefix(name)}"


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
