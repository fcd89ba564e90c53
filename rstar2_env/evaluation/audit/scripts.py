"""Reproductions: short programs, each of which exits with code 0 only if it reproduces one finding.

Every program begins with the setup of the target. ``confirm`` runs a program in a fresh process; a finding is reported
only if its program reproduces it there.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rstar2_env.evaluation.audit.process import AuditCall, environment

_REPEATED = re.compile(r"(.{1,8}?)\1{40,}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The result of a reproduction in a fresh process.

    Attributes:
        shown: Whether the program reproduced the finding.
        output: Output of the program, truncated.
    """

    shown: bool
    output: str


def confirm(script: str, *, timeout_s: float) -> Confirmation:
    """Run a reproduction in a fresh process, in an empty folder.

    Args:
        script: Source of the program.
        timeout_s: Time limit, in seconds.
    """
    with tempfile.TemporaryDirectory(prefix="rstar2-audit-") as place:
        folder, file = Path(place) / "current", Path(place) / "reproduction.py"
        folder.mkdir()
        file.write_text(script, encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, str(file)],
            cwd=folder,
            env=environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return Confirmation(False, f"the program did not end within {timeout_s:g} s")
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    return Confirmation(process.returncode == 0, said.decode("utf-8", "replace")[-2000:].strip())


def literal(text: str) -> str:
    """Return a Python expression whose value is the text; long repetitions are written as products."""
    parts, at = [], 0
    for match in _REPEATED.finditer(text):
        parts += [repr(text[at : match.start()])] if match.start() > at else []
        parts.append(f"{match[1]!r} * {len(match[0]) // len(match[1])}")
        at = match.end()
    return " + ".join([*parts, *([repr(text[at:])] if at < len(text) or not parts else [])])


def call_of(call: AuditCall) -> str:
    """Return the Python expression that grades a call."""
    arguments = [literal(call.gold), literal(call.answer), *([literal(call.question)] if call.question else [])]
    return f"grade({', '.join(arguments)})"


def scored(setup: str, calls: Sequence[AuditCall], condition: str) -> str:
    """Return a program that grades calls and checks a condition on each score.

    Args:
        setup: Setup of the target.
        calls: The calls.
        condition: A Python expression that must be true; the variable ``score`` is the score of a call.
    """
    lines = [setup]
    for call in calls:
        lines += [f"score = {call_of(call)}", "print('score:', score)", _unless(condition)]
    return "\n".join([*lines, ""])


def failing(setup: str, call: AuditCall, error: str) -> str:
    """Return a program that shows that a call raises the exception class ``error``.

    If ``error`` is ``"ProcessEnded"``, the program shows instead that the call ends its process with an exit code
    other than 0.
    """
    if error == "ProcessEnded":
        return (
            f"import subprocess, sys\n\nCODE = {_indented(setup, call_of(call))}\n"
            "code = subprocess.run([sys.executable, '-c', CODE]).returncode\nprint('exit code', code)\n"
            f"{_unless('code')}\n"
        )
    return (
        f"{setup}\nimport math\n\ntry:\n    score = {call_of(call)}\n    if not math.isfinite(float(score)):\n"
        "        raise ValueError(f'the grade is {score}')\nexcept BaseException as error:\n"
        f"    print(type(error).__name__, str(error)[:200])\n    shown = type(error).__name__ == {error!r}\n"
        f"else:\n    print('score:', score)\n    shown = False\n{_unless('shown')}\n"
    )


def varying(setup: str, call: AuditCall, rounds: int) -> str:
    """Return a program that repeats a call, at most ``rounds`` times, until it gets a different score."""
    return (
        f"{setup}\n{ATTEMPT}\nseen = set()\nfor _ in range({rounds}):\n    seen.add(attempt(lambda: {call_of(call)}))\n"
        f"    if len(seen) > 1:\n        break\nprint('scores:', seen)\n{_unless('len(seen) > 1')}\n"
    )


def in_order(setup: str, before: Sequence[AuditCall], call: AuditCall) -> str:
    """Return a program that scores a call in a fresh process and after other calls, and compares the two scores."""
    alone = _indented(setup, f"{ATTEMPT}\nprint(attempt(lambda: {call_of(call)}))")
    first = "\n".join(f"attempt(lambda: {call_of(one)})" for one in before)
    after = _indented(setup, f"{ATTEMPT}\n{first}\nprint(attempt(lambda: {call_of(call)}))")
    return _compared([("alone", alone, {}, []), ("after other grades", after, {}, [])])


def in_settings(
    setup: str, call: AuditCall, settings: Sequence[tuple[str, Mapping[str, str | None], Sequence[str], str, bool]]
) -> str:
    """Return a program that grades a call in several settings, and succeeds if the scores differ.

    Args:
        setup: Setup of the target.
        call: The call.
        settings: For each setting: its name, environment variables, flags of the interpreter, source that runs before
            the setup, and whether the call runs in another thread.
    """
    runs = []
    for name, variables, flags, before, thread in settings:
        graded = f"attempt(lambda: {call_of(call)})"
        if thread:
            said = (
                "import threading\ntold = []\n"
                f"work = threading.Thread(target=lambda: told.append({graded}))\nwork.start()\nwork.join()\n"
                "print(told[0])"
            )
        else:
            said = f"print({graded})"
        runs.append((name, _indented(f"{before}\n{setup}".strip(), f"{ATTEMPT}\n{said}"), variables, flags))
    return _compared(runs)


def endless(setup: str, call: AuditCall, grade_timeout_s: float) -> str:
    """Return a program that shows that a call exceeds the time limit of a grade."""
    return (
        f"import subprocess, sys\n\nCODE = {_indented(setup, call_of(call))}\ntry:\n"
        f"    subprocess.run([sys.executable, '-c', CODE], timeout={grade_timeout_s!r}, stderr=subprocess.DEVNULL)\n"
        f"except subprocess.TimeoutExpired:\n    print('no grade within {grade_timeout_s:g} s')\n"
        "else:\n    raise SystemExit('not reproduced')\n"
    )


def growing(setup: str, gold: str, answer: str, size: int, *, factor: float, least_s: float) -> str:
    """Return a program that shows that doubling an answer's length multiplies the grading time by at least ``factor``.

    Args:
        setup: Setup of the target.
        gold: The gold answer.
        answer: Python expression of the answer for a size ``n``.
        size: The larger of the two sizes that are timed; the other is half of it.
        factor: Minimum ratio of the time at ``size`` to the time at half of it.
        least_s: Minimum time at ``size``, in CPU seconds.
    """
    return (
        f"{setup}\nimport time\n\ndef seconds(n):\n    began = time.process_time()\n    try:\n"
        f"        grade({literal(gold)}, {answer})\n    except Exception:\n        pass\n"
        "    return time.process_time() - began\n\n"
        f"half, whole = (min(seconds(n) for _ in range(3)) for n in ({size // 2}, {size}))\n"
        f"print(f'{{half:.3f}} s for n = {size // 2}, {{whole:.3f}} s for n = {size}')\n"
        f"{_unless(f'whole >= {factor} * half and whole >= {least_s}')}\n"
    )


def planted(setup: str, call: AuditCall, files: Mapping[str, str]) -> str:
    """Return a program that compares a call's score without and with the planted ``files`` (texts by path)."""
    code = _indented(setup, f"{ATTEMPT}\nprint(attempt(lambda: {call_of(call)}))")
    lines = [f"import pathlib, subprocess, sys\n\nCODE = {code}", f"FILES = {dict(files)!r}\n", _GRADED]
    lines += ["before = graded(CODE)", "made = []", "for path, text in FILES.items():", "    path = pathlib.Path(path)"]
    lines += ["    made = [path, *[folder for folder in path.parents if not folder.exists()], *made]"]
    lines += ["    path.parent.mkdir(parents=True, exist_ok=True)", "    path.write_text(text, encoding='utf-8')"]
    lines += ["try:", "    after = graded(CODE)", "finally:", "    for path in made:"]
    lines += ["        path.rmdir() if path.is_dir() else path.unlink()"]
    return "\n".join([*lines, "print('without:', before, 'with:', after)", _unless("before != after"), ""])


def in_used_folder(setup: str, calls: Sequence[AuditCall], call: AuditCall) -> str:
    """Return a program that scores a call before and after other calls, all in one folder, and compares the scores."""
    graded = "\n".join(f"attempt(lambda: {call_of(one)})" for one in calls)
    then = _indented(setup, f"{ATTEMPT}\nprint(attempt(lambda: {call_of(call)}))")
    lines = [f"import subprocess, sys\n\nFIRST = {_indented(setup, f'{ATTEMPT}{graded}')}", f"THEN = {then}\n", _GRADED]
    lines += ["before = graded(THEN)", "graded(FIRST)", "after = graded(THEN)", "print(before, after)"]
    return "\n".join([*lines, _unless("before != after"), ""])


def executed(setup: str, call: AuditCall, canary: str) -> str:
    """Return a program that shows that grading an answer runs the answer as code, which creates the file ``canary``."""
    return (
        f"{setup}\nimport os\n\ntry:\n    print('score:', {call_of(call)})\nexcept BaseException as error:\n"
        f"    print(type(error).__name__)\nprint('files:', os.listdir('.'))\n{_unless(f'os.path.exists({canary!r})')}\n"
    )


_GRADED = """
def graded(code):
    return subprocess.run([sys.executable, '-c', code], stdout=subprocess.PIPE).stdout

"""
ATTEMPT = """
def attempt(graded):
    try:
        return repr(graded())
    except BaseException as error:
        return type(error).__name__
"""


def _unless(condition: str) -> str:
    return f"if not ({condition}):\n    raise SystemExit('not reproduced')"


def _indented(setup: str, last: str) -> str:
    """Return ``setup`` and ``last`` as one string literal to embed in a program, in raw triple quotes if possible."""
    program = f"{setup}\n{last}\n"
    plain = "'''" not in program and not program.endswith("'")
    return f"r'''\n{program}'''" if plain else repr(program)


def _compared(runs: Sequence[tuple[str, str, Mapping[str, str | None], Sequence[str]]]) -> str:
    lines = ["import os, subprocess, sys, tempfile", "", "def graded(code, variables, flags):"]
    lines += [
        "    env = {**os.environ, 'PYTHONHASHSEED': '0', **variables}",
        "    env = {name: value for name, value in env.items() if value is not None}",
        "    with tempfile.TemporaryDirectory() as folder:",
        "        command = [sys.executable, *flags, '-c', code]",
        "        return subprocess.run(command, env=env, cwd=folder, stdout=subprocess.PIPE).stdout.decode().strip()",
        "",
        "found = {}",
    ]
    for name, code, variables, flags in runs:
        lines.append(f"found[{name!r}] = graded({code}, {dict(variables)!r}, {list(flags)!r})")
    return "\n".join([*lines, "print(found)", _unless("len(set(found.values())) > 1"), ""])
