"""Protects the user's files: no command or function overwrites or removes a file that it did not write.

An output folder must be new or empty, or hold an earlier output of the same kind as the new one; the earlier output is
continued or replaced. Each folder has a manifest, which lists the files that were written into it; replacing a folder
removes these files only, and is refused if the folder holds any other file or an input. A file must be new or empty, or
it is continued or replaced on request. Not covered: whether an earlier output has the same options; the code that
continues the output checks this.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.append_only import append_text, whole_lines
from rstar2_env.core.files.full_disk import naming_full_disk

MANIFEST = "manifest.jsonl"
"""File in every output folder, with the kind of the folder and the files written into it; docs/run-folder.md describes
it."""

KINDS = {
    "training": "a training run",
    "sft": "a cold start",
    "evaluation": "an evaluation",
    "suite": "a suite of evaluations",
    "pipeline": "the run of a pipeline",
    "demo": "a demonstration",
    "export": "an exported model",
    "package": "an exported environment",
    "trajectories": "exported trajectories",
    "model": "a model",
    "logs": "the logs of servers",
}
"""The kinds of output folders, each with the name that messages use."""

Location: TypeAlias = str | os.PathLike[str]

_LINES = (".jsonl", ".ndjson", "")
"""Suffixes of files with JSON lines; error messages suggest the first suffix."""

_PAGE = (".html", ".htm", "")
"""Suffixes of files with an HTML page; error messages suggest the first suffix."""

_SHOWN = 3


def check_folder(
    folder: Location,
    kind: str,
    *,
    option: str = "out",
    resume: bool | None = False,
    overwrite: bool | None = False,
    inputs: object = (),
) -> None:
    """Raise an error if an output must not be written into a folder; nothing is changed.

    Args:
        folder: The folder. If it does not exist, its nearest existing parent must be writable.
        kind: Kind of the output; a key of ``KINDS``.
        option: Name of the option that sets the folder, for error messages.
        resume: Whether an earlier output of this kind is continued; ``None`` if this kind cannot be continued.
        overwrite: Whether an earlier output of this kind is replaced; ``None`` if this kind cannot be replaced.
        inputs: Options of the command. Each text in them that is a path names an input, which is never replaced.

    Raises:
        ConfigurationError: The folder cannot be written, or holds something that must not be overwritten.
    """
    at = Path(folder)
    _check_writable(at, option)
    _refuse_both(resume, overwrite)
    there, own = _entries(at), _Manifest.of(at)
    if not there or (resume and own is None):
        return
    if own is None or own.kind != kind:
        what = "a run" if (at / "run.json").is_file() else "files of yours"
        what = what if own is None else KINDS.get(own.kind, own.kind)
        raise ConfigurationError(
            f"The folder {folder} holds {what} ({_listed(there)}), which would be overwritten: choose a "
            "new or an empty folder.",
            option=option,
        )
    if resume:
        return
    if not overwrite:
        ways = {"resume": (resume, ", continue it"), "overwrite": (overwrite, ", or replace it")}
        known = [way for way, (offered, _) in ways.items() if offered is not None]
        raise ConfigurationError(
            f"The folder {folder} already holds {KINDS[kind]}: choose another "
            f"folder{''.join(ways[way][1] for way in known)}",
            option=tuple(known) or option,
        )
    if foreign := list(own.foreign()):
        raise ConfigurationError(
            f"The folder {folder} cannot be replaced, because it holds files that rstar2 did not write "
            f"({_listed(foreign)}): move these files, or choose another folder.",
            option=option,
        )
    refuse_inputs(at, inputs, option=option)


def begin_folder(folder: Location, kind: str, *files: str, resume: bool = False, option: str = "out") -> None:
    """Create an output folder with its manifest; an earlier output of the same kind is removed unless ``resume``.

    Args:
        folder: The folder.
        kind: Kind of the output.
        *files: Files that will be written, as for ``list_files``.
        resume: Keep the earlier output.
        option: Name of the option that sets the folder, for error messages.

    Raises:
        ConfigurationError: See ``check_folder``.
    """
    at = Path(folder)
    check_folder(at, kind, option=option, resume=resume, overwrite=not resume)
    own = _Manifest.of(at)
    if own is not None and not resume:
        own.remove()
    at.mkdir(parents=True, exist_ok=True)
    if own is None or not resume:
        header = {"format": "rstar2-env/files", "version": 1, "kind": kind}
        append_text(at / MANIFEST, json.dumps(header) + "\n", truncate=True)
    list_files(at, *files)


def list_files(folder: Location, *files: str, folders: Mapping[str, Iterable[str] | None] | None = None) -> None:
    """Add files to the manifest of a folder, before they are written; a folder without a manifest stays without one.

    Args:
        folder: The folder.
        *files: Paths in the folder, with ``/``; ``*`` stands for any text without ``/``.
        folders: Subfolders, each with its files; ``None`` for a subfolder that is being written: its files are those
            that its own manifest lists, or all files in it if it has no manifest. A later entry for a subfolder
            replaces earlier entries.
    """
    entries: list[dict[str, Any]] = [{"file": file} for file in files]
    for name, content in (folders or {}).items():
        entries.append({"folder": name, **({} if content is None else {"files": sorted(content)})})
    if (Path(folder) / MANIFEST).is_file() and entries:
        append_text(Path(folder) / MANIFEST, "".join(json.dumps(entry) + "\n" for entry in entries))


def files_in(folder: Location) -> list[str]:
    """Return the paths of all files below a folder, relative to it, with ``/``; links to folders count as files."""
    return [path.relative_to(folder).as_posix() for path in _walk(Path(folder))]


def kind_of(folder: Location) -> str | None:
    """Return the kind of a folder with a manifest; ``None`` for any other folder."""
    own = _Manifest.of(Path(folder))
    return None if own is None else own.kind


def check_file(
    path: Location,
    *,
    option: str = "out",
    resume: bool | None = None,
    overwrite: bool = False,
    inputs: object = (),
    lines: bool = False,
    page: bool = False,
) -> None:
    """Raise an error if an output must not be written to a file; nothing is changed.

    Args:
        path: The file.
        option: Name of the option that sets the file, for error messages.
        resume: Whether an existing file is continued; ``None`` if its kind of content cannot be continued.
        overwrite: Whether an existing file is replaced.
        inputs: Options of the command. Each text in them that is a path names an input, which is never replaced.
        lines: Whether the content is JSON lines, so that a suffix of another format (``.csv``) is a mistake.
        page: Whether the content is an HTML page, so that a suffix of another format (``.pdf``) is a mistake.

    Raises:
        ConfigurationError: The suffix names another format; the file exists and is not to be continued or replaced; the
            file is an input or not a regular file; or its folder cannot be written.
    """
    at = Path(path)
    _check_writable(at.parent, option)
    _refuse_both(resume, overwrite)
    for wanted, content, suffixes in ((lines, "JSON lines", _LINES), (page, "an HTML page", _PAGE)):
        if wanted and at.suffix.lower() not in suffixes:
            raise ConfigurationError(
                f"{path} has the suffix {at.suffix!r}, but this command writes {content}: name the file "
                f"{at.with_suffix(suffixes[0]).name}.",
                option=option,
            )
    if at.is_dir():
        raise ConfigurationError(f"{path} is a folder: give the name of a file.", option=option)
    if not os.path.lexists(at) or resume:
        return
    if at.exists() and not at.is_file():
        raise ConfigurationError(
            f"{path} is not a regular file, so it cannot be written: choose another file.", option=option
        )
    if at.exists() and not at.stat().st_size:
        return
    if not overwrite:
        way = "" if resume is None else ", continue it"
        raise ConfigurationError(
            f"The file {path} already exists: choose another file{way}, or replace it",
            option="overwrite" if resume is None else ("resume", "overwrite"),
        )
    refuse_inputs(at, inputs, option=option)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. It replaces ``path`` on success; after an error, ``path`` is unchanged.

    Args:
        path: The file to replace; its folder is created.
    """
    partial = path.with_name(f"{path.name}.part")
    with naming_full_disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with naming_full_disk(path):
            yield partial
            partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def refuse_inputs(output: Location, inputs: object, *, option: str = "out") -> None:
    """Raise an error if writing an output would replace an input of the same command.

    Args:
        output: The file or folder to write.
        inputs: Options of the command. Each text in them that is a path names an input.
        option: Name of the option that sets the output, for error messages.

    Raises:
        ConfigurationError: An input would be replaced.
    """
    at = Path(os.path.realpath(output))  # unlike resolve(), not an error for a loop of links
    for path in named_paths(inputs):
        if path.resolve() == at or at in path.resolve().parents:
            raise ConfigurationError(
                f"The output {output} cannot be replaced, because this command reads its input from "
                f"{path}: choose another name.",
                option=option,
            )


def named_paths(value: object) -> Iterator[Path]:
    """Yield every existing path in the values of options.

    A path may be a whole text, the part before its first ``:``, or the part before its last ``@``.
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from named_paths(each)
    elif isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        for path in {text, text.partition(":")[0], text.rpartition("@")[0]}:
            if path and len(path) < 1024 and "\0" not in path and "\n" not in path and os.path.exists(path):
                yield Path(path)


@dataclass(slots=True)
class _Manifest:
    """The manifest of a folder.

    Attributes:
        folder: The folder.
        kind: Kind of the output.
        files: Paths of the files in the folder; ``*`` stands for any text without ``/``.
        folders: Files of each listed subfolder, by the subfolder's name; ``None`` if the subfolder was still being
            written when it was listed.
    """

    folder: Path
    kind: str
    files: list[str] = field(default_factory=list)
    folders: dict[str, frozenset[str] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> _Manifest | None:
        """Read the manifest of a folder; ``None`` if there is none."""
        lines = [_entry(line) for line in whole_lines(folder / MANIFEST)] if (folder / MANIFEST).is_file() else []
        if not lines or lines[0].get("format") != "rstar2-env/files":
            return None
        found = cls(folder, str(lines[0].get("kind")))
        for line in lines[1:]:
            if "file" in line:
                found.files.append(str(line["file"]))
            elif "folder" in line:
                content = line.get("files")
                found.folders[str(line["folder"])] = None if content is None else frozenset(map(str, content))
        return found

    def foreign(self) -> Iterator[str]:
        """Yield the files in the folder that are not in the manifest: another program or the user wrote them."""
        nested: dict[str, _Manifest | None] = {}
        for name in files_in(self.folder):
            if not self._lists(name, nested):
                yield name

    def _lists(self, name: str, nested: dict[str, _Manifest | None]) -> bool:
        place, _, last = name.rpartition("/")
        # A file is written under another name first, and may have a lock.
        plain = last.removesuffix(".part").removesuffix(".lock").removeprefix("." if last.endswith(".lock") else "")
        name = f"{place}/{plain}" if place else plain
        same_depth = (pattern for pattern in self.files if pattern.count("/") == name.count("/"))
        if name == MANIFEST or any(fnmatchcase(name, pattern) for pattern in same_depth):
            return True
        within = next((one for one in self.folders if name.startswith(f"{one}/")), None)
        if within is None:
            return False
        inner, content = name[len(within) + 1 :], self.folders[within]
        if within not in nested:
            nested[within] = _Manifest.of(self.folder / within)
        own = nested[within]
        if content is not None:
            return inner in content
        return own is None or own._lists(inner, {})

    def remove(self) -> None:
        """Remove every file in the manifest except locks in use, then the empty folders, and last the manifest."""
        nested: dict[str, _Manifest | None] = {}
        for name in sorted(files_in(self.folder), key=lambda name: name.endswith(MANIFEST)):
            held = name.endswith(".lock") and _is_held(self.folder / name)
            if name != MANIFEST and not held and self._lists(name, nested):
                (self.folder / name).unlink(missing_ok=True)
        for place, _, _ in os.walk(self.folder, topdown=False):
            if Path(place) != self.folder:
                with contextlib.suppress(OSError):  # not empty
                    os.rmdir(place)
        (self.folder / MANIFEST).unlink(missing_ok=True)


def _is_held(lock: Path) -> bool:
    """Whether a process holds a lock file."""
    with contextlib.suppress(OSError), lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _entry(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _entries(folder: Path) -> list[str]:
    """Return the names in a folder, without its manifest and locks; empty if there are no other files below it."""
    if all(_is_ours(path.name) for path in _walk(folder)):
        return []
    return sorted(entry.name for entry in os.scandir(folder) if not _is_ours(entry.name))


def _is_ours(name: str) -> bool:
    return name == MANIFEST or (name.startswith(".") and name.endswith(".lock"))


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (Path(place, name) for name in (*files, *links))


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _refuse_both(resume: bool | None, overwrite: bool | None) -> None:
    if resume and overwrite:
        raise ConfigurationError(
            "An earlier output can be continued or replaced, not both: give only one of the two options",
            option=("resume", "overwrite"),
        )


def _check_writable(folder: Path, option: str) -> None:
    at = Path(os.path.abspath(folder))
    try:
        while not at.exists():
            at = at.parent
        if not at.is_dir():
            raise ConfigurationError(
                f"{folder} cannot be created as a folder, because {at} is a file: choose another folder.", option=option
            )
    except OSError as error:
        raise ConfigurationError(f"The folder {folder} cannot be accessed: {error.strerror}.", option=option) from error
    if not os.access(at, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"The folder {folder} cannot be written, because you do not have permission to write to {at}: "
            "choose another folder.",
            option=option,
        )
