"""Which bridges and notebooks must run: those whose inputs changed since the commit on which they last passed in full.

``tests/last_full.json`` maps each name to that commit. Without an entry, or if git does not have the commit, everything
runs. Runs that pass on a committed tree update the file, which is then committed with the next change; CI does not.
``python last_full.py NAME ...`` updates entries by hand.

Covered: committed, uncommitted and untracked changes. Not covered: new releases of the packages that a bridge tests
against, which ``make proof`` finds, since it runs everything.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from places import ROOT, SUPPORT

RECORD = ROOT / "tests" / "last_full.json"
FULL = "RSTAR2_FULL"
"""If this variable is set, everything runs."""
NOTEBOOKS = "notebooks"

SHARED = (
    "rstar2_env/core/",
    "rstar2_env/env/",
    "rstar2_env/dialects/",
    "pyproject.toml",
    "tests/support/bridges.py",
    "tests/support/last_full.py",
    "tests/support/passes.py",
)
"""Inputs of every bridge and notebook: files, and folders with a slash at the end."""
_NOTEBOOK_INPUTS = ("docs/tutorials/", "tools/docs_site/", "tests/site/", "rstar2_env/__init__.py", "rstar2_env/cli/")
_CHECKED = {"checkers": ("envs_registry/", "rstar2_env/verification/")}
"""Further inputs of a bridge: what it plays by name."""
_BRIDGE_PAGES = ("docs/bridge-agents.md", "docs/bridge-environments.md")
"""Pages whose examples the bridges' tests run."""
_FOLDERS = {"agents": "agents", "envs_registry": "envs_registry", "trainers": "trainers"}
"""Subpackages of ``rstar2_env`` that are folders of the repository."""


def bridge_inputs(name: str) -> list[str]:
    """Files and folders that a bridge depends on: its test, adapters, the audit, and what these import."""
    test = f"tests/bridges/test_{name}.py"
    shared = {*SHARED, *_CHECKED.get(name, ()), "tests/bridges/conftest.py", *_BRIDGE_PAGES}
    return sorted({*shared, test, *_imported(ROOT / test)})


def notebook_inputs() -> list[str]:
    """Files and folders that the tutorials depend on."""
    found = {*SHARED, *_NOTEBOOK_INPUTS}
    for path in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        found |= _imported(path)
    return sorted(found)


def unchanged_since(name: str, inputs: Iterable[str]) -> str | None:
    """Return the commit on which a part last passed in full if its inputs are the same now, otherwise ``None``."""
    if os.environ.get(FULL):
        return None
    commit = _read().get(name)
    changed = _changed_since(commit) if commit else None
    if changed is None:
        return None
    return None if any(_is_under(path, inputs) for path in changed) else commit


def record(names: Iterable[str]) -> bool:
    """Record that parts passed in full on the current commit; returns whether the file was written.

    It is not written in CI, or if the tree has changes that are not committed.
    """
    names = list(names)
    if not names or "RSTAR2_CI" in os.environ or obstacle():
        return False
    commit = _git("rev-parse", "HEAD") or ""
    entries = {**_read(), **dict.fromkeys(names, commit.strip())}
    RECORD.write_text(json.dumps(entries, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return True


def obstacle() -> str:
    """Why the tree is not that of a commit; empty if it is."""
    status = _git("status", "--porcelain", "--", ".", f":!{RECORD.relative_to(ROOT)}")
    if status is None or _git("rev-parse", "HEAD") is None:
        return "git has no commit of this tree"
    return "the tree has changes that are not committed" if status.strip() else ""


def _read() -> dict[str, str]:
    return dict(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else {}


def _changed_since(commit: str) -> list[str] | None:
    """Paths that differ between a commit and the working tree; ``None`` if git does not have the commit."""
    changed = _git("diff", "--name-only", "--no-renames", "-z", commit, "--")
    untracked = _git("ls-files", "--others", "--exclude-standard", "-z")
    return (
        None if changed is None or untracked is None else [path for path in (changed + untracked).split("\0") if path]
    )


def _is_under(path: str, inputs: Iterable[str]) -> bool:
    return any(path == one or (one.endswith("/") and path.startswith(one)) for one in inputs)


def _imported(path: Path) -> set[str]:
    """The repository's files that a file imports, and those that its helpers and adapters import in turn."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        text = waiting.pop().read_text(encoding="utf-8")
        modules = {*re.findall(r"\brstar2_env(?:\.\w+)+", text), *re.findall(r"\b(?:from|import) (\w+)", text)}
        for package, several, names in re.findall(r"\bfrom (rstar2_env[\w.]*) import (?:\(([^)]*)\)|([\w ,]+))", text):
            modules |= {f"{package}.{name.split()[0]}" for name in (several or names).split(",") if name.strip()}
        for module in sorted(modules):
            file = _file_of(module)
            if file is None or file in found:
                continue
            found.add(file)
            if file.startswith(("rstar2_env/adapters/", "rstar2_env/evaluation/audit/", "tests/support/")):
                waiting.append(ROOT / file)
    return found


def _file_of(module: str) -> str | None:
    """The file of a module, if it is one of the repository's, or of the package that has the name."""
    package, *parts = module.split(".")
    if package != "rstar2_env":
        file = SUPPORT / f"{package}.py"
        return str(file.relative_to(ROOT)) if file.exists() and not parts else None
    folder = _FOLDERS.get(parts[0], f"rstar2_env/{parts[0]}") if parts else "rstar2_env"
    while parts:
        place = "/".join([folder, *parts[1:]])
        for file in (f"{place}.py", f"{place}/__init__.py"):
            if (ROOT / file).exists():
                return file
        parts.pop()
    return None


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def main(names: Sequence[str]) -> int:
    """Record that these parts passed on the current commit; prints nothing in CI, whose clone is not kept."""
    shown = f"{RECORD.relative_to(ROOT)}: {', '.join(names)} passed"
    if record(names):
        print(f"{shown} on this commit; commit the file with the next change")
    elif "RSTAR2_CI" not in os.environ:
        print(f"{shown}, which is not recorded: {obstacle()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
