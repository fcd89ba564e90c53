"""Hostile programs that every provider's sandbox must survive.

Covered: sources that crash parsers; attacks on the code that runs a program; misuse of processes, signals, system
calls, memory and files. Each program lists its acceptable statuses. Not covered: escapes, which
``rstar2_env.sandbox.check`` tries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import dedent

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Job, Sandbox
from rstar2_env.sandbox.limits import Limits
from rstar2_env.testing.harness import require

HOSTILE_LIMITS = Limits(wall_s=2.0, memory_mb=512, processes=64, output_bytes=64 << 10)
"""Limits under which a sandbox must run the hostile programs."""
_PATIENT_S = 9.0
_LONGEST_S = 25.0


@dataclass(frozen=True)
class HostileProgram:
    """A program, and its acceptable results.

    Attributes:
        name: A short description of the program.
        expect: The acceptable statuses, as values of ``ToolStatus``.
        code: Source of the program.
        contains: Text that its standard output must contain.
        absent: Texts that its standard output must not contain.
        max_wall_s: Upper bound of the outcome's ``wall_s``, in seconds. The default is long enough for a busy machine
            to end sixty processes. It is shorter than the sleeps of child processes, so a sandbox that waits for the
            child processes of a program exceeds it.
    """

    name: str
    expect: tuple[str, ...]
    code: str
    contains: str = ""
    absent: tuple[str, ...] = ()
    max_wall_s: float = _LONGEST_S


def hostile_programs() -> list[HostileProgram]:
    """Return every program. The list is built at each call, because one program is 100 MB long."""
    return [*parser_programs(), *HARNESS, *PROCESSES, *SYSTEM]


def survive(sandbox: Sandbox, program: HostileProgram) -> None:
    """Run a program; check that its result is acceptable and that the next call is unaffected.

    If a timeout is not an acceptable result, the wall-clock limit is raised, so that machine load does not matter.

    Raises:
        AssertionError: The result is not acceptable, or the next call fails; the message describes the result.
    """
    limits = HOSTILE_LIMITS if "timeout" in program.expect else replace(HOSTILE_LIMITS, wall_s=_PATIENT_S)
    outcome = sandbox.run(Job(program.code, limits=limits))
    what = f"{program.name!r} got the status {outcome.status.value!r}"
    expected = " or ".join(program.expect)
    require(outcome.status.value in program.expect, f"{what} instead of {expected}: {outcome!s:.500}")
    require(program.contains in outcome.stdout, f"{what} without {program.contains!r} in its output")
    for text in program.absent:
        require(text not in outcome.stdout, f"{what} and printed {text!r}")
    require(outcome.wall_s < program.max_wall_s, f"{what} after {outcome.wall_s:.1f} s")
    require(outcome.attempts == 1, f"{what} after {outcome.attempts} starts")
    following = sandbox.run(Job("print(6 * 7)"))
    went_well = (following.status, following.stdout) == (ToolStatus.OK, "42\n")
    what = f"after {program.name!r}, print(6 * 7) got the status {following.status.value!r}"
    require(went_well, f"{what}: {following!s:.500}")


def _program(name: str, expect: str, code: str, contains: str = "", absent: str = "") -> HostileProgram:
    absences = (absent,) if absent else ()
    if "\n" in code:  # a program of one line needs no dedent, and may be 100 MB long
        code = dedent(code).strip("\n")
    return HostileProgram(name, tuple(expect.split()), code, contains, absences)


def parser_programs() -> list[HostileProgram]:
    """Return programs whose source text crashes some parsers."""
    return [
        _program("100 MB of source", "empty memory timeout", "#" + "x" * (100 << 20)),
        _program("unary minus, 200,000 deep", "syntax_error memory exception", "-" * 200_000 + "1"),
        _program("5,000 open brackets", "syntax_error", "[" * 5000),
        _program("200,000 attributes", "syntax_error memory exception", "x" + ".a" * 200_000),
        _program("a number of 10 MB", "syntax_error memory timeout", "x = " + "9" * (10 << 20)),
        _program("NUL in the source", "syntax_error", "print(1)\0"),
        _program("a lone surrogate in the source", "syntax_error", "print('\ud800')"),
    ]


HARNESS = [
    _program(
        "builtins of the harness set to None",
        "exception",
        """
        import builtins
        for name in "len repr str type isinstance BaseException Exception getattr dict list open compile print".split():
            builtins.__dict__[name] = None
        1 / 0
        """,
    ),
    _program(
        "repr set to None, then a value",
        "ok",
        """
        import builtins
        builtins.repr = builtins.BaseException = None
        42
        """,
    ),
    _program(
        "os._exit and json replaced",
        "exception",
        """
        import os, json, traceback
        os._exit = lambda code: None
        json.dumps = traceback.format_exception = lambda *a, **k: '{"exit_code": 0}'
        raise ValueError("real")
        """,
    ),
    _program(
        "a report of success, then a failed exit",
        "exception",
        """
        import os
        os.write(4, b'{"value": "forged", "status": "ok", "exit_code": 0}')
        os._exit(7)
        """,
    ),
    _program(
        "a report of a syntax error by a program that ran",
        "exception",
        """
        import os
        os.write(4, b'{"phase": "compile", "error_type": "SyntaxError"}')
        os._exit(1)
        """,
    ),
    _program(
        "invalid data in the report pipe",
        "exception",
        r"""
        import os
        for junk in (b"", b"\xff\x00", b"[" * 50000, b"null", b"[1]", b'{"error_type": 5, "value": {"a": []}}', b'"x"'):
            try: os.write(4, junk)
            except OSError: pass
        os._exit(3)
        """,
    ),
    _program(
        "a flood of reports",
        "timeout",
        """
        import os
        while True:
            os.write(4, b"{}" * 1000)
        """,
    ),
    _program(
        "output and errors closed",
        "exception",
        """
        import os
        os.close(1)
        os.close(2)
        raise ValueError
        """,
    ),
    _program(
        "its own trace function and profile function",
        "ok",
        """
        import sys, threading
        def trace(*a): raise SystemExit(5)
        print("set")
        sys.setprofile(None)
        threading.settrace(trace)
        """,
        "set",
    ),
    _program(
        "an exception whose text and type are hostile",
        "exception",
        """
        class Meta(type):
            def __repr__(cls): raise ValueError
        class Hostile(Exception, metaclass=Meta):
            def __str__(self): raise SystemExit(0)
        raise Hostile
        """,
    ),
    _program(
        "a value whose repr never ends",
        "timeout",
        """
        class Endless:
            def __repr__(self):
                while True: pass
        Endless()
        """,
    ),
    _program("a value whose repr exits", "ok empty", "class Quits:\n def __repr__(self): raise SystemExit(0)\nQuits()"),
]

PROCESSES = [
    _program(
        "every signal to pid 1",
        "ok exception",
        """
        import os
        for number in range(1, 65):
            try: os.kill(1, number)
            except OSError: pass
        print("alive")
        """,
    ),
    _program(
        "SIGKILL to every process",
        "ok exception",
        """
        import os, signal, time
        if os.fork() == 0: time.sleep(60)
        os.kill(-1, signal.SIGKILL)
        print("after", os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    ),
    _program("SIGSTOP to itself", "timeout", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    _program("another program in its place", "ok", "import os\nos.execv('/bin/echo', ['echo', 'b'])", "b"),
    _program(
        "a thread that never ends",
        "timeout",
        """
        import threading, time
        threading.Thread(target=time.sleep, args=(60,)).start()
        print("main done", flush=True)
        """,
        "main done",
    ),
    _program(
        "a forked child that continues into the harness",
        "ok",
        """
        import os
        pid = os.fork()
        if pid: os.waitpid(pid, 0)
        print("one of two")
        """,
        "one of two",
    ),
]

SYSTEM = [
    _program(
        "sockets of every family",
        "ok",
        """
        import socket
        for family in range(1, 46):
            for kind in (1, 2, 3, 5):
                try: socket.socket(family, kind); print("made", family, kind)
                except OSError: pass
        print("end")
        """,
        "end",
        "made",
    ),
    _program(
        "a mount", "blocked", "import ctypes\nctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None)", "", "did"
    ),
    _program(
        "io_uring, performance counters, memory handlers",
        "ok",
        """
        import ctypes
        libc = ctypes.CDLL(None)
        print([libc.syscall(number, 8, None) for number in (425, 298, 323)])
        """,
        "[-1, -1, -1]",
    ),
    _program("unknown system calls", "ok", "import ctypes\nctypes.CDLL(None).syscall(9999)"),
    _program(
        "descriptors of the parent",
        "ok",
        """
        import os
        def is_open(fd):
            try: os.fstat(fd)
            except OSError: return False
            return True
        [fd for fd in range(4096) if is_open(fd)]
        """,
    ),
    _program("a sparse file of 1 TB", "exception", "open('/tmp/x', 'wb').truncate(1 << 40)\nprint('made')", "", "made"),
    _program(
        "4 GB set aside at once",
        "exception",
        """
        import os
        os.posix_fallocate(os.open("/tmp/x", os.O_CREAT | os.O_WRONLY), 0, 4 << 30)
        print("got")
        """,
        "",
        "got",
    ),
    _program(
        "memory in files without a name",
        "exception",
        """
        import os
        taken = [os.posix_fallocate(os.memfd_create("x"), 0, 60 << 20) for n in range(64)]
        print("took it all")
        """,
        "",
        "took it all",
    ),
    _program(
        "memory shared with children",
        "memory exception timeout",
        """
        import mmap
        blocks = []
        for _ in range(64):
            block = mmap.mmap(-1, 64 << 20)
            for at in range(0, 64 << 20, 4096): block[at] = 1
            blocks.append(block)
        print("took 4 GB")
        """,
        "",
        "took 4 GB",
    ),
    _program(
        "many children, each within its bounds",
        "memory ok empty timeout",
        """
        import os, time
        for _ in range(16):
            if os.fork() == 0:
                block = bytearray(200 << 20)
                for at in range(0, len(block), 4096): block[at] = 1
                time.sleep(0.3)
                os.write(1, b"took\\n")
                os._exit(0)
        try:
            while True: os.wait()
        except ChildProcessError: pass
        """,
        "",
        "took\n" * 8,
    ),
    _program(
        "a folder of great depth",
        "ok timeout",
        """
        import os
        try:
            while True: os.mkdir("d"); os.chdir("d")
        except OSError: print("end")
        """,
    ),
]
