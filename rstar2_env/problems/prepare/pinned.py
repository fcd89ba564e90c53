"""Loads sources at the revision that a lock file names, and compares their content with the lock file's checksum.

Nothing is downloaded unless ``download`` is set. If a source is missing, the error names the source, how to fetch it
and the expected checksum. Covered: data sets of the Hub from a folder of copies, from the cache, or from the Hub
itself; files, families and all other sources of problems. Not covered: processing the problems (``prepare``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.net.hub import hub_commit
from rstar2_env.problems.catalog import NAMED_SETS
from rstar2_env.problems.files.hub import find_copy, hub_rows
from rstar2_env.problems.load import load_problems
from rstar2_env.problems.prepare.lock import UNKNOWN, Lock, Pin, checksum_of
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.source import FiniteSource
from rstar2_env.problems.spec import located, split_spec

T = TypeVar("T")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FIRST = ", the first "
"""Separator before the number of problems at the end of ``Pin.source``; the checksum depends on that number."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The places where data sets are looked up.

    Attributes:
        lock: The recorded revision and checksum of each source.
        hub_folder: A folder of copies of data sets (see ``find_copy``); ``None`` for the cache of the Hub's libraries.
        download: Whether missing sources may be downloaded.
        say: Receives a sentence for each value that was filled into the lock.
        find: Maps a file name in a source to its path; ``None`` uses the name relative to the current folder. The
            lock stores the name, so it does not reveal where a machine keeps its files.
    """

    lock: Lock
    hub_folder: str | None = None
    download: bool = False
    say: Callable[[str], None] = print
    find: Callable[[str], Path | None] = lambda name: None

    def problems(self, name: str, spec: str | Mapping[str, Any], *, split: str, count: int | None) -> list[Problem]:
        """Load the problems of a source.

        Args:
            name: Name of the source in the pipeline.
            spec: Any value that ``load_problems`` accepts.
            split: The split.
            count: Number of problems to take; ``None`` for all.

        Raises:
            ConfigurationError: The source is missing or cannot be read, or its content does not match the lock file.
        """
        repository, licence = _hub_of(spec)
        source = str(spec) if isinstance(spec, str) else ", ".join(f"{key}={value}" for key, value in spec.items())
        pin = Pin(f"{source} ({split}){'' if count is None else f'{_FIRST}{count}'}", licence=licence)
        if repository is None:
            found = list(_taken(load_problems(located(spec, self.find), split=split), name, count))
            return self.checked(name, pin, found)

        def load(where: Mapping[str, Any]) -> list[Problem]:
            return list(_taken(load_problems(spec, split=split, **where), name, count))

        return self._loaded(name, pin, repository, load)

    def rows(
        self, name: str, repository: str, *, config: str | None, split: str, columns: Collection[str], licence: str
    ) -> list[Mapping[str, Any]]:
        """Load the rows of a data set on the Hub.

        Args:
            name: Name of the source in the pipeline.
            repository: ``owner/name``.
            config: Configuration of the data set, if there are several; otherwise ``None``.
            split: Split of the data set, as the data set names it.
            columns: The columns to read.
            licence: The licence, as the data set's page states it.

        Raises:
            ConfigurationError: See ``problems``.
        """
        pin = Pin(f"{repository} ({config or 'default'}, {split})", licence=licence)

        def load(where: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            table = hub_rows(repository, config, split, **where)
            wanted = table.select_columns([column for column in table.column_names if column in columns])
            return [jsonable(row) for row in wanted]

        return self._loaded(name, pin, repository, load)

    def checked(self, name: str, pin: Pin, found: list[T]) -> list[T]:
        """Compare the records of a source with the lock, and fill in values that are unknown in the lock.

        Args:
            name: Name of the source in the pipeline.
            pin: Describes the source; its checksum is not used.
            found: The records: problems, or JSON-compatible values.

        Raises:
            ConfigurationError: The content does not match the lock.
        """
        expected, actual = self._expected(name, pin), checksum_of(found)
        if expected.known_checksum not in (None, actual):
            raise ConfigurationError(
                f"The content of the source {name!r} ({pin.source}) differs from the content that the "
                f"lock file {self.lock.path} records: its {len(found)} records have the checksum "
                f"{actual}, but the lock file has the checksum {expected.checksum} of {expected.records} "
                f"records at revision {expected.revision}. Fetch that revision. To continue with the "
                f"present content instead, set both the checksum and the revision to {UNKNOWN!r} in the "
                "lock file."
            )
        for said in self.lock.fill(name, replace(pin, checksum=actual, records=len(found))):
            self.say(said)
        return found

    def _expected(self, name: str, pin: Pin) -> Pin:
        """Return the lock's pin of a source.

        If the lock's source differs from ``pin.source`` only in the number of problems, return ``pin`` with the lock's
        revision. If the lock has a different source under this name, or none, return ``pin``.
        """
        known = self.lock.pins.get(name)
        if known is None or known.source == pin.source:
            return known or pin
        same = known.source.partition(_FIRST)[0] == pin.source.partition(_FIRST)[0]
        return replace(pin, revision=known.revision) if same else pin

    def _revision(self, name: str, pin: Pin, repository: str) -> str | None:
        """Return the commit to load: the lock's, else the local copy's or (with ``download``) the Hub's, if known."""
        known = self._expected(name, pin).known_revision
        if known is not None and _COMMIT.fullmatch(known):
            return known
        if self.hub_folder or not self.download:
            copy = find_copy(repository, known, self.hub_folder)
            return known if copy is None else copy.revision or known
        return hub_commit("datasets", repository, known) or known

    def _loaded(self, name: str, pin: Pin, repository: str, load: Callable[[Mapping[str, Any]], list[T]]) -> list[T]:
        revision = self._revision(name, pin, repository)
        pin = replace(pin, revision=revision or UNKNOWN)
        try:
            found = load({"revision": revision, "download": self.download, "hub_folder": self.hub_folder})
        except ConfigurationError as error:
            expected = self._expected(name, pin)
            at = f" --revision {expected.revision}" if expected.known_revision else ""
            raise ConfigurationError(
                f"The source {name!r} ({pin.source}) cannot be loaded. {error} To fetch it on a machine with a "
                "network, run again with download=true. To copy it from such a machine, run there: hf download "
                f"{repository} --repo-type dataset{at} --local-dir FOLDER/{repository}. Then copy FOLDER here and "
                f"pass hub_folder=FOLDER. Expected revision: {expected.revision}. Expected checksum: "
                f"{expected.checksum}."
            ) from error
        return self.checked(name, pin, found)


def _hub_of(spec: str | Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the name on the Hub of the data set that a source uses, and the data set's licence.

    The name is ``None`` for a source that is not on the Hub; an unknown licence is "not stated".
    """
    written = spec if isinstance(spec, str) else spec.get("spec", spec.get("hub"))
    if not isinstance(written, str):
        return None, "not stated"
    name, _ = split_spec(written)
    if name in NAMED_SETS and not Path(name).exists():
        return NAMED_SETS[name].hub, NAMED_SETS[name].licence
    if isinstance(spec, Mapping) and "hub" in spec:
        return name, "not stated"
    return (name.removeprefix("hf:"), "not stated") if name.startswith("hf:") else (None, "not stated")


def _taken(source: Iterable[Problem], name: str, count: int | None) -> Iterable[Problem]:
    if count is None and not isinstance(source, FiniteSource):
        raise ConfigurationError(
            f"The source {name!r} generates problems without end: set the number of problems to take from it.",
            option="take",
        )
    return islice(source, count)
