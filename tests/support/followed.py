"""Prints the files of the package in which something calls functions, in the order of their first call.

Run as a program, so that nothing was started or imported before: ``python followed.py action FOLDER``. What runs while
a module is imported does not count.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import rstar2_env

ROOT = str(Path(rstar2_env.__file__).resolve().parents[1])
CALL = '{"name": "execute_python_code_with_standard_io", "arguments": {"code": "print(6 * 7)", "input": ""}}'


def action(_: Path) -> Callable[[], object]:
    env = rstar2_env.make_env("rstar2/MathTool-v0")
    env.reset(seed=1)
    return lambda: (env.step(f"<tool_call>{CALL}</tool_call>"), env.close())


def episode(folder: Path) -> Callable[[], object]:
    options = {"episodes": 1, "workers": 1, "out": folder / "episodes.jsonl"}
    return lambda: rstar2_env.evaluate("rstar2/MathTool-v0", "oracle", **options).summary


def grade(_: Path) -> Callable[[], object]:
    return lambda: rstar2_env.verify("(x+1)^2", "x^2+2x+1", timeout_s=60.0)


def job(_: Path) -> Callable[[], object]:
    sandbox = rstar2_env.make_sandbox("local")
    return lambda: (sandbox.run(rstar2_env.Job("6 * 7")), sandbox.close())


def followed(act: Callable[[], object]) -> list[str]:
    """The files, as the repository names them."""
    seen: dict[str, None] = {}

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := frame.f_code.co_filename).startswith(ROOT) and not imports(frame):
            seen.setdefault(name)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [Path(name).resolve().relative_to(ROOT).as_posix() for name in seen]


def imports(frame: FrameType | None) -> bool:
    """Whether a module of the package is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    print("\n".join(followed(globals()[sys.argv[1]](Path(sys.argv[2])))))
