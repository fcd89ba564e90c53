"""The lock file of a pipeline: the revision and the checksum of every source that a run uses.

Values of a source that was never loaded are ``UNKNOWN``. The first load fills them in; later loads are compared with
them. Covered: reading, filling, comparing, writing. Not covered: loading (see ``pinned``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import write_json
from rstar2_env.problems.problem import Problem

UNKNOWN = "unknown: to be filled at first load"
"""Placeholder for a revision or checksum that is not known yet."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Pin:
    """The recorded identity, revision and checksum of a source.

    Attributes:
        source: The data set's name on the Hub with its configuration and split, a file, or a family; and the number of
            problems, if not all are used.
        revision: Commit of the data set, or ``UNKNOWN``.
        checksum: ``sha256:`` of the loaded records (see ``checksum_of``), or ``UNKNOWN``.
        records: Number of loaded problems or conversations; ``None`` while unknown.
        licence: The licence, as the source's page states it.
    """

    source: str
    revision: str = UNKNOWN
    checksum: str = UNKNOWN
    records: int | None = None
    licence: str = "not stated"

    @property
    def known_revision(self) -> str | None:
        """The revision; ``None`` if it is unknown."""
        return None if self.revision == UNKNOWN else self.revision

    @property
    def known_checksum(self) -> str | None:
        """The checksum; ``None`` if it is unknown."""
        return None if self.checksum == UNKNOWN else self.checksum


def checksum_of(records: Iterable[Any]) -> str:
    """Return the checksum of records in order: ``sha256:`` and 64 digits, over one line of JSON per record.

    It depends on the content of the records and not on the file format, so a copy in another format has the same
    checksum.

    Args:
        records: Problems, of which only question and answer are hashed, or JSON-compatible values.
    """
    digest = sha256()
    for record in records:
        plain = [record.question, record.answer] if isinstance(record, Problem) else record
        digest.update(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return f"sha256:{digest.hexdigest()}"


class Lock:
    """The pins (recorded revisions and checksums) of a pipeline's sources, stored in a file.

    Args:
        path: The file; if it does not exist, there are no pins. ``None`` keeps the pins in memory.

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
        """Replace unknown values of a source with the values that a load found.

        Args:
            name: Name of the source.
            pin: The values found; its unknown values change nothing.

        Returns:
            One sentence for each value that was filled in; empty if all values were known.
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
        """Return the content of the file as JSON-compatible values."""
        return {"version": _VERSION, "sources": {name: asdict(pin) for name, pin in sorted(self.pins.items())}}

    def write(self) -> bool:
        """Write the file atomically; return whether it was written (never if ``path`` is ``None``)."""
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
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"The lock file {path} (a record of the exact versions of problem sources) cannot be read: {error}."
        ) from error
    sources = found.get("sources") if isinstance(found, Mapping) else None
    if not isinstance(sources, Mapping) or found.get("version") != _VERSION:
        raise ConfigurationError(
            f"{path} is not a lock file (a record of the exact versions of problem sources): expected "
            f"version {_VERSION} of the format, and a mapping of sources."
        )
    known = {field.name for field in fields(Pin)}
    pins: dict[str, Pin] = {}
    for name, values in sources.items():
        if not isinstance(values, Mapping) or not isinstance(values.get("source"), str) or values.keys() - known:
            raise ConfigurationError(
                f"{path}, source {name!r}: expected source, revision, checksum, records and licence, got {values!r}."
            )
        pins[name] = Pin(**values)
    return pins
