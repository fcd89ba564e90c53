"""The keeper of a program: its parent process, which ends every process that the program leaves behind.

With a process namespace, the kernel ends these processes when the namespace's first process ends; that process waits
for the program, and ends with the keeper. Without a process namespace, the keeper becomes the parent of all orphans,
and kills its descendants. Covered: these two ways to end processes; the keeper's own end; SIGTERM, which the keeper
passes on; and the program's exit code. Not covered: the other layers (``layers``); orphans of a keeper that gets
SIGKILL, if there is no process namespace.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from functools import partial

from ..kernel import linux
from ..kernel.attempt import reason
from ..kernel.plan import IsolationPlan
from ..zygote.watch import descendants
from . import layers

Begin = Callable[[Callable[[], bool]], object]
"""Function that replaces the calling process by the program. Its argument returns whether the parent has ended."""

_GRACE_S = 1.5
"""Seconds within which the program must end after SIGTERM; the keeper's caller kills the keeper after two seconds."""
_SWEEPS_S = 5.0
_PAUSE_S = 0.005
_SIGNALS = {signal.SIGTERM, signal.SIGCHLD}


def keep(plan: IsolationPlan, begin: Begin, parent: int, *, network: bool) -> int:
    """Run a program, and end all of its processes when it ends, after SIGTERM, or when the parent ends.

    Args:
        plan: The layers that work on this machine.
        begin: Called in a new process, which it replaces by the program.
        parent: Id of the process that must be this process's parent.
        network: Whether the program may use the network.

    Returns:
        The exit code of the program, or 128 plus the number of the signal that ended it.

    Raises:
        OSError: A layer of the plan does not work.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    linux.die_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # the parent ended before the kernel was asked to report its end
        return 0
    linux.become_subreaper()
    layers.separate(plan, network=network)
    first = partial(_be_first, plan, begin) if "pid" in plan.namespaces else partial(_start, begin)
    child = _fork(partial(_lead, first))
    _drop_streams()
    try:
        return _wait(child, parent)
    finally:
        _end_descendants()


def _lead(action: Callable[[Callable[[], bool]], object], orphaned: Callable[[], bool]) -> None:
    """Run ``action(orphaned)`` as leader of a new process group.

    A signal to the keeper's group then reaches the program only once: the keeper passes it on.

    Args:
        action: The action.
        orphaned: Returns whether this process's parent has ended.
    """
    os.setpgid(0, 0)
    action(orphaned)


def _be_first(plan: IsolationPlan, begin: Begin, orphaned: Callable[[], bool]) -> None:
    """Act as the first process of a process namespace: start the program, wait for its end, and end the namespace.

    Args:
        plan: The layers that work on this machine.
        begin: As in ``keep``.
        orphaned: Returns whether this process's parent has ended.
    """
    if "mount" in plan.namespaces:
        layers.mount_own_proc()
    program = _fork(partial(_start, begin))
    _drop_streams()
    while not orphaned():
        pid, status = os.wait()
        if pid == program:
            os._exit(_code(status))


def _start(begin: Begin, orphaned: Callable[[], bool]) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    begin(orphaned)


def _fork(action: Callable[[Callable[[], bool]], object]) -> int:
    """Run an action in a forked child that gets SIGKILL when this process ends; return the child's process id.

    The action receives a function that returns whether this process has ended. The child needs this function because
    this process may end before the SIGKILL is arranged, and a process namespace hides its parent's id.
    """
    waits, held = os.pipe()  # this process holds the second end until it ends
    pid = os.fork()
    if pid:
        os.close(waits)
        return pid
    try:
        os.close(held)
        linux.die_with_parent()
        if not (gone := lambda: bool(select.select([waits], [], [], 0)[0]))():
            action(gone)
    except SystemExit as error:
        os.write(2, f"{error}\n".encode())
    except OSError as error:
        os.write(2, f"The program cannot be isolated: {reason(error)}\n".encode())
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(1)


def _drop_streams() -> None:
    """Replace this process's standard streams by the null device, so that the program's end closes the real ones."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)


def _wait(child: int, parent: int) -> int:
    until: float | None = None
    while True:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    return _code(ended[1])
        if until is None:
            received = signal.sigwait(_SIGNALS)
        elif (left := until - time.monotonic()) > 0 and (found := signal.sigtimedwait(_SIGNALS, left)) is not None:
            received = signal.Signals(found.si_signo)
        else:
            return 128 + signal.SIGTERM
        if received == signal.SIGTERM:
            with contextlib.suppress(ProcessLookupError):  # it has not begun, or has ended
                os.killpg(child, signal.SIGTERM)
            grace = _GRACE_S if os.getppid() == parent else 0.0
            until = min(time.monotonic() + grace, until if until is not None else float("inf"))


def _end_descendants() -> None:
    """Kill the descendants of this process, which include adopted orphans, for at most ``_SWEEPS_S`` seconds."""
    until = time.monotonic() + _SWEEPS_S
    while time.monotonic() < until:
        for pid in descendants([os.getpid()]):
            if pid != os.getpid():
                linux.kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_PAUSE_S)


def _code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
