"""The process that runs the audited code: ``python child.py REPLIES_FD``, which ``GraderProcess`` starts.

It executes a target's setup (Python source that defines ``grade(gold, answer, question)``) and answers requests.
Requests are lines of JSON on standard input; the reply to each grade is a line of JSON on the descriptor
``REPLIES_FD``. The target cannot access these two descriptors: its standard input is empty, and its output is
discarded. If the request with the setup has a true ``trace``, the child records the files and variables that the target
reads, and reports them when asked. Only the standard library is imported here, so that the target runs in a plain
interpreter.

Not covered: isolation. The target runs with the rights of the user.
"""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_LONGEST_TEXT = 60
_MOST_TEXTS = 300


class Traced:
    """While ``on`` is true, records the paths and the environment variables that this process reads."""

    def __init__(self) -> None:
        self.on = False
        self.files: dict[str, bool] = {}
        self.folders: set[str] = set()
        self.variables: set[str] = set()

    def start(self) -> None:
        """Hook the functions that read files, folders, modules and environment variables, to record their use."""
        own, original, path_of = self, os.stat, os.fsdecode

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if own.on and event == "open" and isinstance(arguments[0], (str, bytes)):
                writes = isinstance(arguments[2], int) and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
                own.saw(path_of(arguments[0]), writes)
            elif own.on and event in ("os.listdir", "os.scandir"):
                own.listed(path_of(arguments[0] or "."))
            elif own.on and event == "import" and arguments[0] not in sys.modules:
                own.imported(arguments[0])
            elif own.on and event == "subprocess.Popen":
                for text in arguments[1] if isinstance(arguments[1], (list, tuple)) else ():
                    if isinstance(text, str) and os.path.splitext(text)[1] and "\n" not in text:
                        own.saw(text, False)

        def stat(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
            if own.on and isinstance(path, (str, bytes, os.PathLike)):
                own.saw(path_of(os.fspath(path)), False)
            return original(path, *arguments, **options)

        class Environ(os._Environ):  # type: ignore[type-arg]
            def __getitem__(self, key: str) -> str:
                if own.on:
                    own.variables.add(str(key))
                value: str = super().__getitem__(key)
                return value

        sys.addaudithook(hook)
        os.stat = stat
        os.environ.__class__ = Environ

    def saw(self, path: str, writes: bool) -> None:
        """Record a file and whether it is written; ignore folders, modules, and files of the interpreter or kernel."""
        self.on = False  # what follows examines paths itself
        try:
            path = os.path.abspath(path)
            ours = (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev")
            if path.startswith(ours) or "__pycache__" in path or (path.endswith(".py") and os.path.exists(path)):
                return
            if not os.path.isdir(path):
                self.files[path] = self.files.get(path, False) or writes
        finally:
            self.on = True

    def listed(self, path: str) -> None:
        """Record a folder whose entries are read, if it is in the current folder or is that folder."""
        path = os.path.abspath(path)
        if os.path.commonpath([path, os.getcwd()]) == os.getcwd():
            self.folders.add(path)

    def imported(self, name: str) -> None:
        """Record a module that could be imported from the current folder."""
        here = os.getcwd()
        if "." not in name and any(os.path.abspath(folder) == here for folder in sys.path):
            self.saw(os.path.join(here, f"{name}.py"), False)


def texts_of(function: Any) -> tuple[list[str], list[str]]:
    """Return short literals (strings, numbers), and names of attributes and imports, in a function's source file."""
    import ast
    import inspect

    try:
        with open(inspect.getsourcefile(inspect.unwrap(function)) or "", encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, TypeError, SyntaxError, ValueError):
        return [], []
    found: list[str] = []
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names[node.attr] = None
        elif isinstance(node, ast.alias):
            names[node.name] = None
        elif isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float)):
            text = str(node.value)
            if 0 < len(text) <= _LONGEST_TEXT and "\n" not in text and text not in found:
                found.append(text)
    return found[:_MOST_TEXTS], list(names)[:_MOST_TEXTS]


def number(raw: Any) -> float | None:
    """Convert a grade to a float; ``None`` stays ``None``.

    Raises:
        TypeError: The grade is not a number.
        ValueError: The grade is not finite.
    """
    if raw is None:
        return None
    if isinstance(raw, (str, bytes)):
        raise TypeError(f"the grader returned {raw!r}, expected a number")
    value = float(raw)
    if not math.isfinite(value):
        raise ValueError(f"the grader returned {value}, expected a finite number")
    return value


def place_of(error: BaseException) -> str:
    """Return the last place in the traceback outside of this file, as " (FILE, line N)"; "" if there is none."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<") and file != __file__:
            place = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


def fault_of(error: BaseException) -> str:
    """Describe an error of a target's setup: class, message and place; for this package's errors, only the message."""
    if any(base.__name__ == "Rstar2Error" for base in type(error).__mro__):
        return str(error)[:500]
    return f"{type(error).__name__}: {error}"[:500] + place_of(error)


def graded(grade: Callable[..., Any], call: list[str]) -> dict[str, Any]:
    """Call ``grade`` with the arguments in ``call`` (gold answer, answer, question).

    Returns:
        ``score`` (``None`` after an exception), ``error`` ("" without an exception), ``seconds`` (CPU time) and
        ``wall`` (wall-clock seconds).
    """
    began, wall = time.process_time(), time.monotonic()
    try:
        reply: dict[str, Any] = {"score": number(grade(*call)), "error": ""}
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        reply = {"score": None, "error": f"{type(error).__name__}: {error}"[:300]}
    reply["seconds"] = time.process_time() - began
    reply["wall"] = time.monotonic() - wall
    return reply


def main() -> None:
    """Answer the parent's requests, one JSON object per line, until standard input ends."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    replies = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    traced, names = Traced(), dict[str, Any](__name__="audited")

    def say(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    for line in requests:
        asked = json.loads(line)
        if "setup" in asked:
            if asked.get("trace"):
                traced.start()
                traced.on = True
            try:
                exec(compile(asked["setup"], "<setup>", "exec"), names)
                say({"ok": True})
            except BaseException as error:
                say({"ok": False, "error": fault_of(error)})
        elif "ask" in asked:
            try:
                say({"value": eval(asked["ask"], {**names, "texts_of": texts_of})})
            except BaseException as error:
                say({"error": f"{type(error).__name__}: {error}"[:500]})
        elif "traced" in asked:
            traced.on = False
            found = {"files": traced.files, "folders": sorted(traced.folders), "variables": sorted(traced.variables)}
            say(found)
        elif asked.get("thread"):
            for call in asked["calls"]:
                told: list[dict[str, Any]] = []
                thread = threading.Thread(target=lambda call=call, told=told: told.append(graded(names["grade"], call)))
                thread.start()
                thread.join()
                say(told[0])
        else:
            for call in asked["calls"]:
                say(graded(names["grade"], call))


if __name__ == "__main__":
    main()
