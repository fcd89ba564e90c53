"""Tests a running sandbox: for each of its guarantees, a program tries to break the guarantee.

Covered: each guarantee in ``capabilities()``. The programs run in the sandbox and attack targets outside the sandbox.
Not covered: exploits of the kernel. ``rstar2 sandbox check`` prints the result.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.docker.walls import APART
from rstar2_env.sandbox.job import Job, Outcome, Sandbox
from rstar2_env.sandbox.limits import Limits

_DEATH_S = 60.0
_LOOKS = 4
"""Number of jobs that write files; the same number of later jobs search for these files. One job of each kind is not
enough, because successive jobs may run in different containers."""
_LEAVE = """
import os
for folder in (".", "/tmp", "/dev/shm"):
    try:
        open(os.path.join(folder, "{mark}"), "w").close()
    except OSError:
        pass
"""
_LOOK = """
import glob, os
found = [path for folder in (".", "/tmp", "/dev/shm") for path in glob.glob(os.path.join(folder, "{mark}*"))]
print(f"REACHED {{found}}" if found else "nothing")
"""
_LIMITS = Limits(wall_s=120.0, cpu_s=60.0, memory_mb=128, processes=32, output_bytes=1 << 16, file_mb=16)
"""Limits of a program that tries to escape, generous enough for a busy machine; it ends once it has a result."""
_SHORT = replace(_LIMITS, wall_s=1.0)


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of one attempt to break out of the sandbox.

    Attributes:
        layer: The attacked guarantee or mechanism, by its name in ``capabilities()``.
        held: Whether the sandbox stopped the attempt.
        detail: Observed status and output of the program.
    """

    layer: str
    held: bool
    detail: str


def try_to_escape(sandbox: Sandbox) -> list[Trial]:
    """Attack every guarantee and every active mechanism of a sandbox; return the result of each attempt."""
    inactive = {layer.name for layer in sandbox.capabilities() if not layer.active and not layer.required}
    # If each call has its own container, the processes with low ids in it belong to the warden: skip them.
    from_pid = 400 if getattr(sandbox, "wall", "call") == "container" else 3
    with _baits() as baits:
        trials = [
            _trial(sandbox, name, code.format(**baits, from_pid=from_pid), held)
            for name, (code, held) in _ATTEMPTS.items()
            if name not in inactive
        ]
    if any(layer.name == APART for layer in sandbox.capabilities()):
        trials.append(_leave_and_look(sandbox))
    return trials


def _leave_and_look(sandbox: Sandbox) -> Trial:
    """Test that calls are isolated from one another: leave files in writable folders, and look for them later."""
    mark = f"rstar2-left-{os.getpid()}-{time.monotonic_ns()}"
    for _ in range(_LOOKS):
        sandbox.run(Job(_LEAVE.format(mark=mark), limits=_LIMITS))
    seen = [sandbox.run(Job(_LOOK.format(mark=mark), limits=_LIMITS)) for _ in range(_LOOKS)]
    held = all(outcome.status is ToolStatus.OK and outcome.stdout == "nothing\n" for outcome in seen)
    return Trial(APART, held, f"{seen[-1].status.value}: {seen[-1].stdout.strip()[:60]}")


def _trial(sandbox: Sandbox, layer: str, code: str, held: Callable[[Outcome], bool]) -> Trial:
    outcome = sandbox.run(Job(code, limits=_SHORT if layer == "bounded time" else _LIMITS))
    lines = outcome.stdout.strip().splitlines()
    shown = next((line for line in lines if "REACHED" in line), lines[-1] if lines else "")
    return Trial(layer, held(outcome), f"{outcome.status.value}{': ' + shown[:60] if shown else ''}")


@contextlib.contextmanager
def _baits() -> Iterator[dict[str, object]]:
    """Create targets for attacks, outside the sandbox, for the duration of the ``with`` block.

    Yields:
        ``port`` (of a listening socket), ``path`` (of a file), ``pid`` (of this process), ``mark`` (a unique text).
    """
    secret = "rstar2-bait"
    os.environ["RSTAR2_BAIT"] = secret
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        tempfile.NamedTemporaryFile("w", dir=_home(), prefix=".rstar2-bait-") as file,
    ):
        file.write(secret)
        file.flush()
        try:
            yield {"port": server.getsockname()[1], "path": file.name, "pid": os.getpid(), "mark": f"bait{os.getpid()}"}
        finally:
            del os.environ["RSTAR2_BAIT"]


def _home() -> str:
    home = os.path.expanduser("~")
    return home if os.access(home, os.W_OK) else tempfile.gettempdir()


def _ended_as(*statuses: ToolStatus) -> Callable[[Outcome], bool]:
    return lambda outcome: outcome.status in statuses and "REACHED" not in outcome.stdout


_nothing_reached = _ended_as(ToolStatus.OK, ToolStatus.BLOCKED)


_NETWORK = """
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_INET, ("192.0.2.1", 53)),
                        (socket.AF_UNIX, "/run/docker.sock"), (socket.AF_UNIX, "\\0abstract")):
    try:
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(0.3)
        s.connect(address)
        print("REACHED", address)
    except OSError as error:
        print("no:", error)
"""
_PROCESSES = """
import os
seen = []
for pid in [{pid}, *range({from_pid}, 400)]:
    try:
        os.kill(pid, 0)
        seen.append(pid)
    except OSError:
        pass
try:
    listed = os.listdir("/proc")
except OSError:
    listed = []
for pid in listed:
    if not pid.isdigit() or int(pid) in (1, os.getpid()):
        continue
    try:
        if b"RSTAR2_BAIT" in open(f"/proc/{{pid}}/environ", "rb").read():
            seen.append(pid)
    except OSError:
        pass
print("REACHED" if seen or "RSTAR2_BAIT" in os.environ else "no other process", seen)
"""
_FILES = """
import os
for path in ({path!r}, "/etc/shadow", "/root", "/home", os.path.dirname({path!r})):
    try:
        found = os.listdir(path) if os.path.isdir(path) else open(path).read()
        print("REACHED" if found else "empty", path)
    except OSError as error:
        print("no:", error)
for folder in ("/etc", "/usr", "/", "/var/tmp", "/sandbox"):
    path = os.path.join(folder, "rstar2-bait")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(path)
        print("REACHED: wrote", path)
    except OSError as error:
        print("no:", error)
"""
_PRIVILEGES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, try_it in (
    ("a mount namespace", lambda: libc.unshare(0x00020000) == 0),
    ("user 0", lambda: os.getuid() != 0 and os.setuid(0) is None),
    ("another root", lambda: os.chroot("/tmp") is None),
):
    try:
        print("REACHED" if try_it() else "no:", name)
    except OSError as error:
        print("no:", name, error)
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc.capget(header, sets)
print("REACHED" if any(sets) else "none:", "capabilities", list(sets))
"""
_CALLS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, call in (
    ("a user namespace", lambda: libc.unshare(0x10000000)),
    ("an io_uring", lambda: libc.syscall(425, 8, None)),
    ("a packet of the kernel's log", lambda: libc.klogctl(3, ctypes.create_string_buffer(99), 99)),
    ("a message queue", lambda: libc.msgget(0, 0o1600)),
):
    print("REACHED" if call() >= 0 else "no:", name)
"""
_TIME = """
import signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
time.sleep(60)
print("REACHED")
"""
_MEMORY = """
import os, time
reader, writer = os.pipe()
os.set_blocking(reader, False)
pids = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        block = bytearray(40 << 20)
        for at in range(0, len(block), 4096):
            block[at] = 1
        os.write(writer, b"x")
        time.sleep(600)
    pids.append(pid)
held = 0
while held < len(pids) and not os.waitpid(-1, os.WNOHANG)[0]:
    try:
        held += len(os.read(reader, 9))
    except BlockingIOError:
        time.sleep(0.02)
if held == len(pids):
    time.sleep(30)  # longer than the interval of the zygote's checks
    print("REACHED")
os._exit(0)
"""
_MANY = """
import os, time
made = 0
try:
    while made < {limit}:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        made += 1
except OSError as error:
    print("no:", error)
if made >= {limit}:
    time.sleep(30)  # longer than the interval of the zygote's checks
    print("REACHED", made)
os._exit(0)
"""
_OUTPUT = """
while True:
    print("x" * 1000)
"""
_DAEMON = """
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b"{mark}")  # a process inherits the name, and so has it from its start
reader, writer = os.pipe()
if os.fork() == 0:
    try:
        os.setsid()
    except OSError:
        pass
    if os.fork() == 0:
        os.write(writer, b"x")
        time.sleep(600)
    os._exit(0)
os.close(writer)  # otherwise the next line would wait forever if the sandbox kills the daemon before it writes
os.read(reader, 1)
print("{mark}")
"""


def _gone(outcome: Outcome) -> bool:
    """Return whether a process ends within ``_DEATH_S`` seconds; ``outcome.stdout`` contains the process's name."""
    name = outcome.stdout.strip()
    deadline = time.monotonic() + _DEATH_S
    while name in _names_of_processes():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return outcome.status is ToolStatus.OK and bool(name)


def _names_of_processes() -> set[str]:
    names = set()
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
            names.add(file.read().strip())
    return names


_ATTEMPTS: dict[str, tuple[str, Callable[[Outcome], bool]]] = {
    "no network": (_NETWORK, _nothing_reached),
    "no access to other processes": (_PROCESSES, _nothing_reached),
    "no access to the user's files": (_FILES, _nothing_reached),
    "no privilege escalation": (_PRIVILEGES, _nothing_reached),
    "bounded time": (_TIME, _ended_as(ToolStatus.TIMEOUT)),
    "bounded memory": (_MEMORY, _ended_as(ToolStatus.OK, ToolStatus.EMPTY, ToolStatus.MEMORY)),
    "bounded processes": (
        _MANY.replace("{limit}", str(_LIMITS.processes)),
        _ended_as(ToolStatus.OK, ToolStatus.EXCEPTION),
    ),
    "bounded output": (_OUTPUT, _ended_as(ToolStatus.OUTPUT_LIMIT)),
    "no leftover processes": (_DAEMON, _gone),
    "system-call filter": (_CALLS, _nothing_reached),
}
