"""Parses the notation for a source of problems, on a command line or in a configuration, into name and options.

Covered: the notation of all parts (``rstar2_env.core.parts``), except that the name of an existing file always means
that file; short forms of ``columns``; JSON objects. Not covered: what the options mean (see ``load``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import parse_options, read_loosely
from rstar2_env.core.parts import split_part
from rstar2_env.problems.records import FIELDS


def split_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """A name and its options: ``"a.csv:question=problem,limit=5"`` are ``"a.csv"`` and two options.

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
    except ValueError as error:
        raise ConfigurationError(f"Expected a JSON object, got the source {text[:80]!r}: {error}.") from error
    assert isinstance(value, Mapping)  # it begins with a brace
    return value


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
