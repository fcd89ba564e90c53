"""The lock file of a pipeline: which revision and which content of every source a run was made from.

What nobody has loaded yet is ``UNKNOWN`` and says so; the first load fills it in, and every later one is compared with
it. Covered: reading, filling, comparing, writing. Not covered: loading (see ``pinned``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.lines import write_json
from rstar2_env.problems.problem import Problem

UNKNOWN = "unknown: to be filled at first load"
"""Stands where a revision or a checksum is not known yet."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Pin:
    """What is known of a source.

    Attributes:
        source: What it is: the data set's name on the Hub with its configuration and split, a file, a family; and how
            many problems of it, where not all are taken.
        revision: Commit of the data set, or ``UNKNOWN``.
        checksum: ``sha256:`` of what it gave (see ``checksum_of``), or ``UNKNOWN``.
        records: How many problems or conversations it gave; ``None`` while unknown.
        licence: As its page states it.
    """

    source: str
    revision: str = UNKNOWN
    checksum: str = UNKNOWN
    records: int | None = None
    licence: str = "not stated"

    @property
    def known_revision(self) -> str | None:
        """The revision, if it is known."""
        return None if self.revision == UNKNOWN else self.revision

    @property
    def known_checksum(self) -> str | None:
        """The checksum, if it is known."""
        return None if self.checksum == UNKNOWN else self.checksum


def checksum_of(records: Iterable[Any]) -> str:
    """The checksum of records in their order: ``sha256:`` and 64 digits, over one line of JSON for each.

    It depends on what the records say and not on how a file stores them, so that a copy in another format has the same.

    Args:
        records: Problems, of which question and answer count, or values that JSON can hold.
    """
    digest = sha256()
    for record in records:
        plain = [record.question, record.answer] if isinstance(record, Problem) else record
        digest.update(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return f"sha256:{digest.hexdigest()}"


class Lock:
    """The pins of a pipeline's sources.

    Args:
        path: The file; one that does not exist has no pins. ``None`` keeps them in memory.

    Attributes:
        path: The file.
        pins: The pin of each source, by its name in the pipeline.

    Raises:
        ConfigurationError: The file is not a lock file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.pins: dict[str, Pin] = {}
        if path is not None and path.exists():
            self.pins = _read(path)

    def fill(self, name: str, pin: Pin) -> list[str]:
        """Put what a load found in the place of what is unknown.

        Args:
            name: Name of the source.
            pin: What was found; what it does not know leaves what is there.

        Returns:
            What was filled in, a sentence for each field; empty if all was known.
        """
        before = self.pins.get(name)
        if before is None or before.source != pin.source:
            before = Pin(pin.source, licence=pin.licence)
        after, said = before, []
        for field in ("revision", "checksum"):
            if getattr(before, field) == UNKNOWN != getattr(pin, field):
                after = replace(after, **{field: getattr(pin, field)})
                said.append(f"{name}: {field} is {getattr(pin, field)}")
        if pin.records is not None:
            after = replace(after, records=pin.records)
        self.pins[name] = after
        return said

    def record(self) -> dict[str, Any]:
        """As the file holds it."""
        return {"version": _VERSION, "sources": {name: asdict(pin) for name, pin in sorted(self.pins.items())}}

    def write(self) -> bool:
        """Write the file, whole or not at all; whether that was possible."""
        if self.path is None:
            return False
        try:
            write_json(self.path, self.record())
        except OSError:
            return False
        return True


def _read(path: Path) -> dict[str, Pin]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The lock file {path} cannot be read: {error}.") from error
    sources = found.get("sources") if isinstance(found, Mapping) else None
    if not isinstance(sources, Mapping) or found.get("version") != _VERSION:
        raise ConfigurationError(f"{path} is not a lock file: expected the version {_VERSION} and sources.")
    known = {field.name for field in fields(Pin)}
    pins: dict[str, Pin] = {}
    for name, values in sources.items():
        if not isinstance(values, Mapping) or not isinstance(values.get("source"), str) or values.keys() - known:
            raise ConfigurationError(
                f"{path}, source {name!r}: expected source, revision, checksum, records and licence, got {values!r}."
            )
        pins[name] = Pin(**values)
    return pins
