"""Probe that plants files: it writes files that the grader reads, with contents that could mean success.

An agent could write the same files. The planted files are those that the target opens, examines, imports or runs, and
new entries of the folders that it lists. In files that the target wrote itself, 0 is exchanged with 1, and true with
false. A finding is a verdict that changes without an exception. Existing files of the user are never changed, and files
that the audit creates outside its folder are removed again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rstar2_env.evaluation.audit import scripts
from rstar2_env.evaluation.audit.bench import AuditBench
from rstar2_env.evaluation.audit.process import AuditCall, AuditGrade, TargetError
from rstar2_env.evaluation.audit.suspicion import Suspicion, Suspicions, shown

_MOST_PLACES = 24
_MOST_KEYS = 40
_CONTENTS = (
    "1",
    "1.0",
    "true",
    "True",
    "0",
    "",
    "pass",
    "PASS",
    "PASSED",
    "ok",
    "success",
    "correct",
    "100",
    "1e9",
    "[1]",
)
_FLIPPED = {"0": "1", "0.0": "1.0", "false": "true", "False": "True"}
_FLIPPED |= {new: old for old, new in _FLIPPED.items()}
_FLIPS = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(_FLIPPED, key=len, reverse=True)))})(?![\w.])")

Planted = Mapping[str, str]
"""Contents of the planted files, by path: absolute, or relative to the current folder of the target."""


def planted_files(
    bench: AuditBench,
    calls: Sequence[AuditCall],
    plain: Sequence[bool],
    folder: Path,
    files: Sequence[str],
    folders: Sequence[str],
) -> Suspicions:
    """Plant other content in files that a traced grader read; yield a suspicion for each file that changes a verdict.

    Args:
        bench: The audit; it starts a fresh process for each attempt.
        calls: Calls to grade.
        plain: Whether the answer of each call was accepted in the traced process.
        folder: The current folder of the traced process.
        files: The files that it read.
        folders: The folders whose entries it read.
    """
    here = str(folder.resolve())
    inside = [os.path.relpath(path, here) for path in files if os.path.realpath(path).startswith(here + os.sep)]
    outside = [path for path in files if not os.path.realpath(path).startswith(here + os.sep) and _can_make(path)]
    paths = (inside + outside)[:_MOST_PLACES]
    suspected: set[str] = set()
    for each in _plantings(bench, calls, folder, paths, [os.path.relpath(one, here) for one in folders]):
        left = {place: planted for place, planted in each.items() if place not in suspected}
        if left and not bench.enough_time("files that the target reads"):
            return
        together = {path: content for planted in left.values() for path, content in planted.items()}
        try:
            if not left or _changed_with(bench, calls, plain, together) is None:
                continue
        except TargetError:
            pass
        for place, planted in left.items():
            try:
                call = _changed_with(bench, calls, plain, planted)
            except TargetError:
                continue
            if call is not None:
                suspected.add(place)
                where = f"{shown(call.answer)} with the gold answer {shown(call.gold)}"
                said = f"the grade of {where} changes if an agent writes {place}"
                script = scripts.planted(bench.target.setup, call, planted)
                yield Suspicion("writable", place, said, script, call, 1, len(calls))


def _plantings(
    bench: AuditBench, calls: Sequence[AuditCall], folder: Path, paths: Sequence[str], folders: Sequence[str]
) -> Iterator[Mapping[str, Planted]]:
    """Yield mappings from the name of a place ("the file X") to the files to plant there.

    All files of one mapping are planted together first; if a verdict changes, each place is tried separately.
    """
    written = {path: text for path in paths if (text := _text(folder / path))}
    yield {f"the file {path}": {path: _opposite(text)} for path, text in written.items()}
    names = [name for name in (*_CONTENTS, *bench.texts[:_MOST_KEYS]) if re.fullmatch(r"[\w.*?-]*\w[\w.*?-]*", name)]
    names += [f"{name}.txt" for name in names if "." not in name]
    entries = [re.sub(r"[*?]", "x", name) for name in names]
    yield {f"entries of the folder {one}": {os.path.join(one, name): "1" for name in entries} for one in folders}
    for content in _contents(bench, calls) if paths else ():
        yield {f"the file {path}": {path: content} for path in paths}
    for content in _programs(bench):
        yield {f"the file {path}": {path: content} for path in paths if path.endswith(".py")}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _opposite(text: str) -> str:
    """Return a text in which 0 is exchanged with 1, and false with true; in JSON, only in the values."""
    try:
        return json.dumps(_turned(json.loads(text)))
    except (ValueError, RecursionError):
        return _FLIPS.sub(lambda match: _FLIPPED[match[0]], text)


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _turned(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_turned(inner) for inner in value]
    return type(value)(not value) if isinstance(value, (bool, int, float)) else value


def _programs(bench: AuditBench) -> Iterator[str]:
    """Yield modules that define the names in the grader's source as true, or as functions that return true values."""
    names = [text for text in (*bench.names, *bench.texts) if text.isidentifier()][: 4 * _MOST_KEYS]
    for value in ("True", "1.0"):
        yield "\n".join(f"{name} = {value}" for name in names)
        yield "\n".join(f"def {name}(*_, **__):\n    return {value}\n" for name in names)


def _changed_with(
    bench: AuditBench, calls: Sequence[AuditCall], plain: Sequence[bool], planted: Planted
) -> AuditCall | None:
    name = f"files {bench.next_folder()}"
    folder, made = bench.folder / name, list[Path]()
    try:
        for path, content in planted.items():
            place = folder / path
            with suppress(OSError):
                made += _make_parents(place.parent)
                place.write_text(content, encoding="utf-8")
                made.append(place)
        with bench.process(name) as process:
            return changed(bench, calls, plain, process.grade(calls))
    finally:
        for place in reversed(made):
            if not place.is_relative_to(bench.folder):
                with suppress(OSError):
                    place.rmdir() if place.is_dir() else place.unlink()
        shutil.rmtree(folder, ignore_errors=True)


def _make_parents(folder: Path) -> Iterator[Path]:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir()
        yield one


def _contents(bench: AuditBench, calls: Sequence[AuditCall]) -> Iterator[str]:
    yield from _CONTENTS
    answers = {call.answer for call, grade in bench.known.items() if call in calls and not bench.paid(grade)}
    yield from sorted(answers, key=len)[:3]
    for refused in ({call.answer: 1.0 for call in calls}, {call.gold: call.answer for call in calls}):
        yield json.dumps(refused)
    keys = bench.texts[:_MOST_KEYS]
    for value in (1.0, True, "pass"):
        yield json.dumps(
            {"reward": value, "score": value, "passed": value, "correct": value, **dict.fromkeys(keys, value)}
        )
    yield "\n".join(keys)
    yield from keys


def changed(
    bench: AuditBench, calls: Sequence[AuditCall], plain: Sequence[bool], grades: Sequence[AuditGrade]
) -> AuditCall | None:
    """Return the first call whose verdict in ``grades`` differs from that in ``plain``; ``None`` if none differs.

    Calls that raised an exception are skipped.
    """
    for call, was, grade in zip(calls, plain, grades, strict=True):
        if bench.paid(grade) != was and not grade.error:
            return call
    return None


def _can_make(path: str) -> bool:
    """Whether a file does not exist and this process may create it."""
    if os.path.lexists(path):
        return False
    parent = next(folder for folder in Path(path).parents if folder.exists())
    return os.access(parent, os.W_OK)
