"""The worker program: reads one request at a time from standard input, grades it, and writes the reply.

``process`` starts this file in a new interpreter. The program ends with its parent (parent-death signal, end of input)
or, if no process is left to kill it, at its own CPU limit. Its memory is limited; it cannot write files, and after the
start an audit hook refuses new processes and connections. These limits are a second line of defence: no code here
evaluates text as code.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import types
from typing import Any, BinaryIO

_REFUSED_EVENTS = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "subprocess.Popen",
    "socket.connect",
    "pty.spawn",
)

_PR_SET_PDEATHSIG = 1
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _register_package() -> None:
    """Make ``rstar2_env.verification`` importable without ``rstar2_env/__init__``, which would load Gymnasium."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name, path in (("rstar2_env", os.path.dirname(folder)), ("rstar2_env.verification", folder)):
        package = types.ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package


def _die_with(parent: int) -> None:
    """Make the kernel send SIGKILL when the process ``parent`` ends; exit at once if it has ended already."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _limit(memory_mb: int) -> None:
    size = memory_mb << 20
    for kind, value in ((resource.RLIMIT_AS, size), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS; the parent watches the size as well
            resource.setrlimit(kind, (value, value))


def _limit_cpu(seconds: float) -> None:
    """Make the kernel end this process if it computes long after its deadline and no process is left to kill it."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(usage.ru_utime + usage.ru_stime + 4 * seconds) + 60
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    writing = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
    if writing or event in _REFUSED_EVENTS:
        raise PermissionError(f"A worker process of the verifier is not allowed to perform {event}.")


def _rss_mb() -> float:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / (1 << 20)
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _read(stream: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = stream.read(size - len(data))
        if not piece:
            os._exit(0)
        data += piece
    return data


def main() -> None:
    """Serve requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which may want to finish its work
    _die_with(int(sys.argv[1]))
    _register_package()
    from rstar2_env.verification.compare import grade, symbolic
    from rstar2_env.verification.values.ball import TooLargeError
    from rstar2_env.verification.workers import wire

    source = os.fdopen(os.dup(0), "rb", buffering=0)
    sink = os.fdopen(os.dup(1), "wb", buffering=0)
    # Output that a library prints must not end up between the frames.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    _limit(int(sys.argv[2]))
    sys.addaudithook(_refuse)

    def send(message: dict[str, Any]) -> None:
        data = wire.encode(message)
        while data:
            data = data[sink.write(data) or 0 :]

    symbolic.on_load(lambda stage: send({"stage": stage}))
    send({"stage": "ready"})
    while True:
        header = _read(source, wire.HEADER.size)
        request = wire.decode(_read(source, wire.body_length(header)))
        _limit_cpu(float(request.get("timeout_s", 1.0)))
        try:
            reason, method = grade.grade_request(request)
        except (MemoryError, RecursionError, OverflowError, TooLargeError):
            reason, method = "too_large", "worker"
        send({"reason": reason, "method": method, "rss_mb": _rss_mb()})


if __name__ == "__main__":
    main()
