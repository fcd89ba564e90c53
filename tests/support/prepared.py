"""Starts Python programs in forks of a process that has imported what they need.

An interpreter takes seconds of CPU to import torch, transformers and TRL, and the tests of trainers start dozens that
do. For a pass of tests ``passes.py`` starts one process that imports them (``prepared.py SOCKET MODULE...``), and
``popen`` lets it fork. Where there is none, as in a test that runs alone, ``popen`` starts an interpreter.

A fork runs the program as an interpreter would: with its words, variables, folder and files, and ``__main__`` of its
own. What differs is what is imported already.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

SOCKET = "RSTAR2_PREPARED"
"""The variable that names the socket of the process that has imported what programs need."""
_END_S, _PAUSE_S = 2.0, 0.01
"""Seconds that forks have to end at the end, and seconds between two looks."""
_NUMBER = struct.Struct("!q")


def popen(
    words: Sequence[str],
    *,
    env: Mapping[str, str],
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    start_new_session: bool = False,
    cwd: Path | None = None,
) -> Any:
    """Start a Python program, whose output is text.

    Args:
        words: What follows ``python`` on the command line: ``-c`` and code, or a script; and arguments.
        env: Its variables. It gets no prepared process of its own.
        stdout: As for ``subprocess.Popen``.
        stderr: The same.
        start_new_session: Whether it leads a session of its own.
        cwd: Its folder; this process's if it is ``None``.

    Returns:
        A ``subprocess.Popen``, or a ``Fork``, which has the methods that tests use.
    """
    env = {name: value for name, value in env.items() if name != SOCKET}
    if SOCKET in os.environ:
        try:
            return Fork(words, env, stdout, stderr, start_new_session, cwd)
        except (OSError, EOFError) as error:
            warnings.warn(f"no prepared process answers ({error}): an interpreter starts", stacklevel=2)
    return subprocess.Popen(
        [sys.executable, *words],
        env=env,
        stdout=stdout,
        stderr=stderr,
        text=True,
        start_new_session=start_new_session,
        cwd=cwd,
    )


def run(
    words: Sequence[str], *, env: Mapping[str, str], timeout: float, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end; see ``popen``.

    Raises:
        subprocess.TimeoutExpired: It took longer, and was killed.
    """
    process = popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)
    try:
        out, err = process.communicate(timeout=timeout)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(list(words), process.returncode, out, err)


class Fork:
    """A program that runs in a fork, with the interface of ``subprocess.Popen``.

    What it prints to a pipe goes to a file, which ``communicate`` reads when the program has ended.

    Attributes:
        pid: The process.
        returncode: Its exit code, or minus the number of the signal that ended it; ``None`` until it is known.
    """

    def __init__(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        stdout: int | IO[Any] | None,
        stderr: int | IO[Any] | None,
        start_new_session: bool,
        cwd: Path | None,
    ) -> None:
        self.args = list(words)
        self.returncode: int | None = None
        self._printed: list[IO[str] | None] = [None, None]
        folder = str(cwd or os.getcwd())
        request = {"words": self.args, "env": dict(env), "folder": folder, "session": start_new_session}
        with open(os.devnull, "r+b") as nowhere, ExitStack() as opened:
            self._socket = opened.enter_context(socket.socket(socket.AF_UNIX))
            self._socket.connect(os.environ[SOCKET])
            files = [nowhere.fileno()]
            for place, file in enumerate((stdout, stderr)):
                if file == subprocess.PIPE:
                    self._printed[place] = file = opened.enter_context(tempfile.TemporaryFile("w+"))
                files.append(nowhere.fileno() if file == subprocess.DEVNULL else _number(file, place + 1))
            data = json.dumps(request).encode()
            socket.send_fds(self._socket, [_NUMBER.pack(len(data))], files)
            self._socket.sendall(data)
            self.pid = _NUMBER.unpack(_read(self._socket, _NUMBER.size))[0]
            opened.pop_all()  # it runs, and needs them

    def poll(self) -> int | None:
        """The exit code, or ``None`` while the program runs."""
        if self.returncode is None and select.select([self._socket], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the program and return its exit code.

        Raises:
            subprocess.TimeoutExpired: It still runs after ``timeout`` seconds.
        """
        if self.returncode is None:
            if not select.select([self._socket], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = _NUMBER.unpack(_read(self._socket, _NUMBER.size))[0]
            self._socket.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        """Wait for the program and return what it printed to pipes."""
        self.wait(timeout)
        out, err = (None if file is None else _whole(file) for file in self._printed)
        return out, err

    def send_signal(self, number: int) -> None:
        """Send a signal, if the program still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the program, if it still runs."""
        self.send_signal(signal.SIGKILL)


def _whole(file: IO[str]) -> str:
    with file:
        file.seek(0)
        return file.read()


def _number(file: int | IO[Any] | None, own: int) -> int:
    if file is None:
        return own
    return file if isinstance(file, int) else file.fileno()


def _read(connection: socket.socket, size: int) -> bytes:
    """Read as many bytes.

    Raises:
        EOFError: The other side has ended.
    """
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError("the process that forks has ended")
        data += part
    return data


@contextmanager
def preparing(modules: Sequence[str], variables: Mapping[str, str] = os.environ) -> Iterator[dict[str, str]]:
    """Run a process that imports modules and forks; yields the variables with which ``popen`` finds it.

    A program's own variables are set after the imports. What a library reads while it is imported, such as the number
    of threads, is that of these.

    It imports them when it is first asked for a fork.
    """
    with tempfile.TemporaryDirectory(prefix="rstar2-tests-") as folder:
        place = str(Path(folder) / "socket")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place)
            listening.listen(64)
            # It ends when its input does: also if this process is killed.
            process = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno()), *modules],
                stdin=subprocess.PIPE,
                env=variables,
                pass_fds=[listening.fileno()],
            )
        try:
            yield {SOCKET: place}
        finally:
            process.communicate()


def _serve(listening: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for everyone who connects, until the input ends; returns in the forks alone, with what one is to run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready = select.select([listening, sys.stdin], [], [])[0]
        running = _reap()
        if sys.stdin in ready:
            until = time.monotonic() + _END_S
            while running and time.monotonic() < until:
                time.sleep(_PAUSE_S)
                running = _reap()
            raise SystemExit
        connection = listening.accept()[0]
        if not os.fork():
            listening.close()
            return _keep(connection)
        connection.close()


def _reap() -> bool:
    """Wait for the forks that have ended, so that their CPU time is counted; returns whether others still run."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _keep(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork the program and tell its pid and its exit code; returns in the program alone."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    size, files, *_ = socket.recv_fds(connection, _NUMBER.size, 3)
    request = json.loads(_read(connection, _NUMBER.unpack(size)[0]))
    pid = os.fork()
    if not pid:
        connection.close()
        return request, files
    for file in files:
        os.close(file)
    try:
        connection.sendall(_NUMBER.pack(pid))
        connection.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    finally:
        os._exit(0)


def _become(request: dict[str, Any], files: list[int], path: list[str]) -> None:
    """Run a program as the interpreter that this process is."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if request["session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    words = request["words"]
    if words[0] == "-c":
        code, name, first, words = words[1], "<string>", "", ["-c", *words[2:]]
    else:
        code, name, first = Path(words[0]).read_text(), words[0], str(Path(words[0]).resolve().parent)
    sys.argv = words
    sys.path[:] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *path]
    main = types.ModuleType("__main__")
    if first:
        main.__file__ = name
    sys.modules["__main__"] = main
    exec(compile(code, name, "exec"), main.__dict__)


def main() -> None:
    """Import the modules and fork, then be the program of a fork."""
    ours = {str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    path = [folder for folder in sys.path if folder not in ours]
    listening = socket.socket(fileno=int(sys.argv[1]))
    if sys.stdin in select.select([listening, sys.stdin], [], [])[0]:
        return
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    request, files = _serve(listening)
    _become(request, files, path)


if __name__ == "__main__":
    main()
