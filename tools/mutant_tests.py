"""``Tests``: the tests that run on mutants, imported once, each mutant in a fork.

Covered: which tests execute which line, the fork of each mutant, its limits of time and memory. Not covered: which
mutants run (``mutate.py``).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, Self

import pytest
from mutations import Mutant, mutated

ROOT = Path(__file__).resolve().parent.parent
MARKERS = "not slow and not train and not proof and not deadlines and not served"
HEAVY = ("numpy", "torch", "hypothesis", "transformers", "gymnasium", "sympy", "scipy.stats")
"""Imported before the first fork, so that no fork imports them again."""
MEMORY = 6 << 30
"""Bytes that a mutant may use in addition to the process that it is forked from."""
SHARE = 3.0
"""CPU time of a mutant, as a multiple of the time that its tests take on the original."""
IMPORTS = 10.0
"""Further CPU time of a mutant whose module is imported again, in seconds."""
WAIT = 20.0
"""Wall time of a mutant, as a multiple of its CPU time: the machine may be loaded."""


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def name_of(item: pytest.Item) -> str:
    """Return the name of a test as pytest's command line takes it, relative to the root of the tree."""
    return f"{os.path.relpath(item.path, ROOT)}::{item.nodeid.partition('::')[2]}"


@functools.cache
def _real(path: str) -> str:
    """Return a path without links: the packages of the tree are imported through links."""
    return os.path.realpath(path)


class Tests:
    """The tests of some files or folders, and the lines of the mutated modules that each of them executes.

    Args:
        paths: Files and folders of tests.
        modules: Paths of the mutated modules, by name.
        sources: Their texts.
        folder: Folder for the record of lines and pytest's output.
        spare: Seconds of CPU time that a mutant may take beyond ``SHARE`` times the time of its tests.
        declared: Name of the file whose tests read what all modules declare; they execute no function of a module.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        modules: Mapping[str, Path],
        sources: Mapping[str, str],
        folder: Path,
        *,
        spare: float = 5.0,
        declared: str = "",
    ) -> None:
        self._spare, self._declared = spare, f"/{declared}::"
        self.paths, self.modules, self.folder = list(paths), dict(modules), folder
        files = sorted({file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))})
        self._digests = {str(file): digest(file.read_text("utf-8")) for file in files}
        self._code = {name: digest(text) for name, text in sources.items()}
        self.suite = digest(json.dumps(self._digests, sort_keys=True))
        self._lines: dict[str, dict[str, Any]] = {}
        self._server: tuple[int, Connection] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process that has imported the tests."""
        if self._server is not None:
            number, pipe = self._server
            pipe.close()
            os.waitpid(number, 0)
            self._server = None

    def start(self) -> None:
        """Import the tests in a fork, and record the lines that they execute, unless an earlier run did.

        Raises:
            SystemExit: The tests cannot be imported, or one fails on the original.
        """
        os.chdir(ROOT)
        os.environ.update({"RSTAR2_CI": "1", "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""})
        for name in HEAVY:
            try:
                importlib.import_module(name)
            except ImportError:
                continue
        gc.freeze()
        here, there = Pipe()
        number = os.fork()
        if number == 0:
            here.close()
            self._serve(there)
        there.close()
        self._server = (number, here)
        record = self.folder / "lines.json"
        known = json.loads(record.read_text("utf-8")) if record.exists() else {}
        kept = {file: one for file, one in known.get("files", {}).items() if self._is_current(file, one)}
        wanted = [file for file in self._digests if file not in kept]
        print(f"recording the lines that the tests of {len(wanted)} files execute", flush=True)
        here.send(("record", (wanted, known.get("imports", []))))
        found, imports = self._receive(here)
        for file in wanted:
            tests = found.get(file, {})
            read = {name: self._code[name] for test in tests.values() for name in test["lines"]}
            kept[file] = {"digest": self._digests[file], "code": read, "tests": tests}
        failed = [name for one in kept.values() for name, test in one["tests"].items() if test["failed"]]
        if failed:
            raise SystemExit("Tests fail on the original; repair them first:\n" + "\n".join(failed))
        record.write_text(json.dumps({"files": kept, "imports": imports}), encoding="utf-8")
        self._lines = {name: test for one in kept.values() for name, test in one["tests"].items()}

    def _is_current(self, file: str, record: Mapping[str, Any]) -> bool:
        """Return whether neither a file of tests nor a module that it executes has changed since its record."""
        changed = any(self._code.get(name) != code for name, code in record["code"].items())
        return not changed and record["digest"] == self._digests.get(file)

    def reaching(self, mutant: Mutant) -> list[str]:
        """Return the tests that a mutant can affect: in a function, those that execute its line; fast ones first."""
        found = [name for name, test in self._lines.items() if mutant.file in test["lines"]]
        if mutant.in_function:
            lines = set(range(mutant.line, mutant.end + 1))
            found = [name for name in found if lines & set(self._lines[name]["lines"][mutant.file])]
            return sorted(found, key=self._seconds)
        found += [name for name in self._lines if self._declared in name]
        return sorted(found, key=lambda name: (not self._is_own(name, mutant), self._seconds(name)))

    def first_failure(self, mutant: Mutant, source: str, names: Sequence[str]) -> str | None:
        """Run tests on a mutant until one fails.

        Returns:
            Name of the test that failed; empty if none did, ``None`` if they did not end in time.
        """
        assert self._server is not None
        limit = self._spare + SHARE * sum(map(self._seconds, names))
        if mutant.in_function:
            self._server[1].send(("run", (mutant, source, list(names), limit)))
            found = self._receive(self._server[1])
            if found != "import":
                return found
        return _forked(lambda: self._imported_again(mutant, source, names), limit + IMPORTS)

    def _is_own(self, name: str, mutant: Mutant) -> bool:
        """Return whether a test is about a mutant's module alone, or about what all modules declare."""
        return f"/test_{Path(mutant.file).stem}.py::" in name or self._declared in name

    def _seconds(self, name: str) -> float:
        return float(self._lines[name]["seconds"])

    def _receive(self, pipe: Connection) -> Any:
        try:
            return pipe.recv()
        except (EOFError, ConnectionResetError):
            raise SystemExit(
                f"The tests could not be run; pytest's output is in {self.folder / 'pytest.log'}."
            ) from None

    # The process that has imported the tests

    def _serve(self, pipe: Connection) -> None:
        log = os.open(self.folder / "pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            pytest.main([*_ARGUMENTS, *map(str, self.paths)], plugins=[_Server(self, pipe)])
        finally:
            os._exit(0)

    def answer(self, items: Sequence[pytest.Item], pipe: Connection) -> None:
        """Answer requests until the other process closes the pipe."""
        by_name = {name_of(item): item for item in items}
        while True:
            try:
                kind, request = pipe.recv()
            except EOFError:
                return
            if kind == "record":
                files, imports = request
                chosen = [item for item in items if str(item.path) in files]
                found, more = _forked(lambda chosen=chosen: self._recorded(chosen), 3600.0, memory=False)
                imports = sorted({*imports, *more})
                _import_all(imports)  # what tests import while they run, so that no mutant imports it again
                gc.collect()
                gc.freeze()
                pipe.send((found, imports))
                continue
            mutant, source, names, limit = request
            module = _module(self.modules[mutant.file])
            target = _function(module, mutant.scope) if module else None
            code = _code(compile(mutated(source, mutant), str(self.modules[mutant.file]), "exec"), mutant.scope)
            if target is None or code is None or target.__code__.co_freevars != code.co_freevars:
                pipe.send("import")
                continue
            chosen = [by_name[name] for name in names]

            def mutate(target: FunctionType = target, code: CodeType = code, chosen: list = chosen) -> str:
                target.__code__ = code
                return _first_failed(chosen)

            pipe.send(_forked(mutate, limit))

    def _recorded(self, items: Sequence[pytest.Item]) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """Run tests on the original.

        Returns:
            Time, result and executed lines of each test, by file and name; and the names of the modules that the tests
            imported.
        """
        before = set(sys.modules)
        # A module of a folder that is linked into rstar2_env runs under the path of the link, if pip installed it so.
        linked = ROOT / "rstar2_env"
        names = {str(path): name for name, path in self.modules.items()}
        own = ((name, path) for name, path in self.modules.items() if path.is_relative_to(ROOT))
        names |= {str(linked / path.relative_to(ROOT)): name for name, path in own}
        found: dict[str, dict[str, Any]] = {}
        for number, item in enumerate(items):
            lines: dict[str, set[int]] = {}

            def on_line(frame: FrameType, event: str, _: Any, lines: dict[str, set[int]] = lines) -> Any:
                name = names.get(_real(frame.f_code.co_filename))
                if name is None:
                    return None
                own = lines.setdefault(name, set())

                def local(frame: FrameType, event: str, _: Any) -> Any:
                    own.add(frame.f_lineno)
                    return local

                return local

            threading.settrace(on_line)
            sys.settrace(on_line)
            began = time.process_time()
            try:
                failed = _failed(item, items[number + 1] if number + 1 < len(items) else None)
            finally:
                sys.settrace(None)
            seconds = time.process_time() - began
            lines = {name: sorted(own) for name, own in lines.items()}
            test = {"seconds": round(seconds, 4), "failed": failed, "lines": lines}
            found.setdefault(str(item.path), {})[name_of(item)] = test
        return found, sorted(set(sys.modules) - before)

    # Changes outside functions

    def _imported_again(self, mutant: Mutant, source: str, names: Sequence[str]) -> str:
        """Import a mutant in a process that has not imported the module, and run tests on it."""
        path = str(self.modules[mutant.file])
        code = compile(mutated(source, mutant), path, "exec")
        load = SourceFileLoader.get_code
        SourceFileLoader.get_code = lambda self, name: code if _real(self.path) == path else load(self, name)  # type: ignore[method-assign]  # only in this fork
        own = [name for name in names if self._is_own(name, mutant)]
        for some in (own, [name for name in names if name not in own]):
            first = _First()
            if some and pytest.main([*_ARGUMENTS, *some], plugins=[first]) != pytest.ExitCode.OK:
                return first.failed or f"import of {mutant.file}"
        return ""


_ARGUMENTS = [
    "-c",
    str(ROOT / "pyproject.toml"),
    f"--rootdir={ROOT}",
    "-q",
    "-s",
    "-p",
    "no:cacheprovider",
    "-m",
    MARKERS,
]


class _Server:
    """Plugin of pytest that answers requests instead of running all tests."""

    def __init__(self, tests: Tests, pipe: Connection) -> None:
        self._tests, self._pipe = tests, pipe

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not session.testsfailed:
            self._tests.answer(session.items, self._pipe)
        return True


class _First:
    """Plugin of pytest that ends after the first test that fails."""

    failed = ""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.failed = "collection" if session.testsfailed else _first_failed(session.items)
        session.testsfailed = int(bool(self.failed))
        return True


def _import_all(names: Sequence[str]) -> None:
    """Import modules by name; those that a test wrote no longer exist."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


class _Reports:
    """Plugin of pytest that remembers whether a report failed."""

    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed


def _failed(item: pytest.Item, after: pytest.Item | None) -> bool:
    """Run a test with all plugins, among them those that turn warnings into errors, and return whether it failed."""
    reports = _Reports()
    item.config.pluginmanager.register(reports)
    try:
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
    finally:
        item.config.pluginmanager.unregister(reports)
    return reports.failed


def _first_failed(items: Sequence[pytest.Item]) -> str:
    """Return the name of the first test that fails; empty if all pass. What the last test set up stays."""
    for number, item in enumerate(items):
        if _failed(item, items[min(number + 1, len(items) - 1)]):
            return name_of(item)
    return ""


def _forked(action: Callable[[], Any], seconds: float, *, memory: bool = True) -> Any:
    """Run an action in a fork and return its result; ``None`` if it does not end in time.

    A fork that dies otherwise, for example without memory, returns ``"crash"``.

    Args:
        action: The function to run.
        seconds: Limit of its CPU time.
        memory: Whether to limit its memory.
    """
    here, there = Pipe(duplex=False)
    number = os.fork()
    if number == 0:
        try:
            here.close()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if memory:
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            there.send(action())
        except BaseException:
            there.send("crash: " + traceback.format_exc(limit=-1).splitlines()[-1])
        finally:
            os._exit(0)
    there.close()
    try:
        if not here.poll(seconds * WAIT):
            return None
        return here.recv()
    except EOFError:
        return None if _ended_by(number) == signal.SIGXCPU else "crash"
    finally:
        here.close()
        _end(number)


def _ended_by(number: int) -> int:
    """Return the signal that ended a child, 0 if none; the child stays to be waited for."""
    info = os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT)
    return int(info.si_status) if info is not None and info.si_code != os.CLD_EXITED else 0


def _end(number: int) -> None:
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)


def _module(path: Path) -> ModuleType | None:
    """Return the imported module of a file."""
    files = ((module, getattr(module, "__file__", None)) for module in list(sys.modules.values()))
    return next((module for module, file in files if file and _real(file) == str(path)), None)


def _function(module: ModuleType, scope: str) -> FunctionType | None:
    """Return a function of a module by its qualified name; that of a property or a class method is found too."""
    found: Any = module
    for name in scope.split("."):
        found = vars(found).get(name)
        if found is None:
            return None
    found = getattr(found, "fget", None) or getattr(found, "__func__", None) or getattr(found, "func", None) or found
    return found if isinstance(found, FunctionType) and not hasattr(found, "__wrapped__") else None


def _code(module: CodeType, scope: str) -> CodeType | None:
    """Return the code of a function of a compiled module by its qualified name."""
    found: CodeType | None = module
    for name in scope.split("."):
        inner = [one for one in found.co_consts if isinstance(one, CodeType) and one.co_name == name] if found else []
        found = inner[-1] if inner else None
    return found
