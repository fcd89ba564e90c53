"""What every provider must survive: the programs of ../shared/attacks, and cases of our own.

After each, the status is one of those expected, and the next call works.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from textwrap import dedent

import pytest
from places import SHARED

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, Sandbox

ATTACKS = SHARED / "attacks"
LIMITS = Limits(wall_s=2.0, memory_mb=512, processes=64, output_bytes=64 << 10)


@dataclass(frozen=True)
class Case:
    """A program, and what is acceptable."""

    name: str
    expect: tuple[str, ...]
    code: str
    contains: str = ""
    absent: tuple[str, ...] = ()
    max_wall_s: float = 10.0


def corpus() -> list[Case]:
    cases = []
    for path in sorted(ATTACKS.glob("*.py")):
        code = path.read_text(encoding="utf-8")
        said = json.loads(code.partition("\n")[0].removeprefix("#"))
        absent = said.get("stdout_absent", ())
        absent = (absent,) if isinstance(absent, str) else tuple(absent)
        # It sets setattr itself to None before it comes to its last line: no Python prints the word.
        contains = "" if path.stem == "patched_builtins" else said.get("stdout_contains", "")
        cases.append(Case(path.stem, tuple(said["expect"]), code, contains, absent, said.get("max_wall_s", 10.0)))
    return cases


def case(name: str, expect: str, code: str, contains: str = "", absent: str = "") -> Case:
    return Case(name, tuple(expect.split()), dedent(code).strip("\n"), contains, (absent,) if absent else ())


PARSER = [
    case("100 MB of source", "empty memory timeout", "#" + "x" * (100 << 20)),
    case("unary minus, 200,000 deep", "syntax_error memory exception", "-" * 200_000 + "1"),
    case("5,000 open brackets", "syntax_error", "[" * 5000),
    case("200,000 attributes", "syntax_error memory exception", "x" + ".a" * 200_000),
    case("a number of 10 MB", "syntax_error memory timeout", "x = " + "9" * (10 << 20)),
    case("NUL in the source", "syntax_error", "print(1)\0"),
    case("a lone surrogate in the source", "syntax_error", "print('\ud800')"),
]

HARNESS = [
    case(
        "builtins that the harness needs ruined",
        "exception",
        """
        import builtins
        for name in "len repr str type isinstance BaseException Exception getattr dict list open compile print".split():
            builtins.__dict__[name] = None
        1 / 0
        """,
    ),
    case(
        "repr ruined, then a value",
        "ok",
        """
        import builtins
        builtins.repr = builtins.BaseException = None
        42
        """,
    ),
    case(
        "os._exit and json replaced",
        "exception",
        """
        import os, json, traceback
        os._exit = lambda code: None
        json.dumps = traceback.format_exception = lambda *a, **k: '{"exit_code": 0}'
        raise ValueError("real")
        """,
    ),
    case(
        "a report of success, then a failed exit",
        "exception",
        """
        import os
        os.write(4, b'{"value": "forged", "status": "ok", "exit_code": 0}')
        os._exit(7)
        """,
    ),
    case(
        "a report of a syntax error by a program that ran",
        "exception",
        """
        import os
        os.write(4, b'{"phase": "compile", "error_type": "SyntaxError"}')
        os._exit(1)
        """,
    ),
    case(
        "reports that are no reports",
        "exception",
        r"""
        import os
        for junk in (b"", b"\xff\x00", b"[" * 50000, b"null", b"[1]", b'{"error_type": 5, "value": {"a": []}}', b'"x"'):
            try: os.write(4, junk)
            except OSError: pass
        os._exit(3)
        """,
    ),
    case(
        "a flood of reports",
        "timeout",
        """
        import os
        while True:
            os.write(4, b"{}" * 1000)
        """,
    ),
    case(
        "output and errors closed",
        "exception",
        """
        import os
        os.close(1)
        os.close(2)
        raise ValueError
        """,
    ),
    case(
        "a trace function and a profile function of its own",
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
    case(
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
    case(
        "a value whose repr never ends",
        "timeout",
        """
        class Endless:
            def __repr__(self):
                while True: pass
        Endless()
        """,
    ),
    case("a value whose repr exits", "ok empty", "class Quits:\n def __repr__(self): raise SystemExit(0)\nQuits()"),
]

PROCESSES = [
    case(
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
    case(
        "SIGKILL to everyone",
        "ok exception",
        """
        import os, signal, time
        if os.fork() == 0: time.sleep(60)
        os.kill(-1, signal.SIGKILL)
        print("after", os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    ),
    case("SIGSTOP to itself", "timeout", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    case("another program in its place", "ok", "import os\nos.execv('/bin/echo', ['echo', 'b'])", "b"),
    case(
        "a thread that never ends",
        "timeout",
        """
        import threading, time
        threading.Thread(target=time.sleep, args=(60,)).start()
        print("main done", flush=True)
        """,
        "main done",
    ),
    case(
        "a forked child that runs on into the harness",
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
    case(
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
    case("a mount", "blocked", "import ctypes\nctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None)", "", "did"),
    case(
        "io_uring, performance counters, memory handlers",
        "ok",
        """
        import ctypes
        libc = ctypes.CDLL(None)
        print([libc.syscall(number, 8, None) for number in (425, 298, 323)])
        """,
        "[-1, -1, -1]",
    ),
    case("unknown system calls", "ok", "import ctypes\nctypes.CDLL(None).syscall(9999)"),
    case(
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
    case("a sparse file of 1 TB", "exception", "open('/tmp/x', 'wb').truncate(1 << 40)\nprint('made')", "", "made"),
    case(
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
    case(
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
    case(
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
    case(
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
    case(
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


@pytest.mark.parametrize(
    "case", [*corpus(), *PARSER, *HARNESS, *PROCESSES, *SYSTEM], ids=lambda case: case.name.replace(" ", "_")
)
def test_survives(any_sandbox: Sandbox, case: Case) -> None:
    outcome = any_sandbox.run(Job(case.code, limits=LIMITS))
    assert outcome.status.value in case.expect, outcome
    assert case.contains in outcome.stdout
    for text in case.absent:
        assert text not in outcome.stdout
    assert outcome.wall_s < case.max_wall_s
    assert outcome.attempts == 1
    following = any_sandbox.run(Job("print(6 * 7)"))
    assert (following.status, following.stdout) == (ToolStatus.OK, "42\n")


@pytest.mark.slow
@pytest.mark.parametrize("case", [*corpus(), *HARNESS, *PROCESSES], ids=lambda case: case.name.replace(" ", "_"))
def test_survives_in_a_session(local: Sandbox, case: Case) -> None:
    local.run(Job("x = 1", session="beside"))
    outcome = local.run(Job(case.code, limits=replace(LIMITS, wall_s=1.0), session="attacked"))
    # One that takes the harness's descriptors away ends its session with it.
    ruined = ("exception",) if outcome.session == "ended" else ()
    assert outcome.status.value in (*case.expect, *ruined, "timeout", "ok", "empty"), outcome
    assert outcome.session in ("new", "interrupted", "ended")
    for text in case.absent:
        assert text not in outcome.stdout
    beside = local.run(Job("x", session="beside"))
    assert (beside.value, beside.session) == ("1", "kept")
    local.run(Job("1", session="attacked"))  # goes as it may, but comes to an end
    local.end_session("attacked")
    assert local.run(Job("print(6 * 7)")).stdout == "42\n"


def test_the_corpus_of_attacks_is_there() -> None:
    if not ATTACKS.is_dir():
        pytest.skip("no ../shared/attacks beside the repository: only the cases of our own were run")
    assert len(corpus()) >= 40
