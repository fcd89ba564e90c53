"""The system-call filter (seccomp), a classic BPF program for the kernel, built once and installed by each child.

The calls in the allow-lists of ``syscalls`` and ``commands`` are allowed; all others are refused. ``clone`` only
creates threads and child processes, ``clone3`` returns ENOSYS (with EPERM, the C library could not create threads),
sockets can only be made as connected pairs, memory is shared only through files, and the limit on core dumps cannot be
changed. Not covered: access to files, and the amount of memory, which other layers limit.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import commands, syscalls

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_AND, _JUMP = 0x54, 0x05
_LONGEST_JUMP = 255
"""Largest number of instructions that a conditional jump of BPF can skip."""
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST, _AT_SECOND, _AT_THIRD, _AT_FOURTH = 0, 4, 16, 24, 32, 40

_ALLOW, _END, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NO_SUCH_CALL = _ERRNO | errno.ENOSYS
_REFUSE = _ERRNO | errno.EPERM
_NO_TERMINAL, _INVALID, _NO_LOCKS = _ERRNO | errno.ENOTTY, _ERRNO | errno.EINVAL, _ERRNO | errno.ENOLCK

_X32 = 0x40000000
"""First number of system calls of the x32 interface; calls of other interfaces have lower numbers."""
_SOL_SOCKET = 1
_RLIMIT_CORE = 4
_PRIO_PROCESS = 0

_OWN, _OWN_GROUP = 0xFFFF0001, 0xFFFF0002
"""Placeholders in the filter for the process's own id and its negative (its process group); ``SeccompFilter.pin`` fills
them in."""
_STEP, _OPERAND = struct.Struct("HBBI"), struct.Struct("I")

Instruction = tuple[int, int, int, int]
_Range = tuple[int, int, list[Instruction]]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


@dataclass(frozen=True)
class Needs:
    """Additional restrictions of the filter that replace missing layers of isolation.

    Attributes:
        pin: Forbid calls that leave the process group, open pidfds, or act on other processes (if there is no process
            namespace).
        no_signals: Forbid signals to other processes (if there is neither a process namespace nor Landlock's scope for
            signals).
        spare_metadata: Forbid changes of mode, owner, times and attributes of files (if the user's files are visible).
        pass_nothing: Forbid calls that send file descriptors to other processes, since the limits on files do not count
            descriptors that are being sent.
    """

    pin: bool = False
    no_signals: bool = False
    spare_metadata: bool = False
    pass_nothing: bool = False


class SeccompFilter:
    """The system-call filter for this machine, in the form that the kernel accepts.

    Args:
        machine: Processor architecture; ``None`` for this machine.
        needs: Additional restrictions; ``None`` for none.
        only: If not empty, the filter refuses only these kinds of calls (see ``build_refusing``). This is for trusted
            programs that the user starts, such as MCP servers.

    Raises:
        OSError: There is no table of system calls for the architecture.
    """

    def __init__(self, machine: str | None = None, needs: Needs | None = None, only: Sequence[str] = ()) -> None:
        machine = platform.machine() if machine is None else machine
        if machine not in _ARCHITECTURES:
            raise OSError(
                errno.ENOSYS,
                f"there is no table of system calls for the processor architecture {machine}",
            )
        instructions = build_refusing(machine, only) if only else build(machine, needs)
        self._code = ctypes.create_string_buffer(b"".join(_STEP.pack(*step) for step in instructions))
        self._owns = [(at, step[3]) for at, step in enumerate(instructions) if step[3] in (_OWN, _OWN_GROUP)]
        self.program = _Program(len(instructions), ctypes.addressof(self._code))

    def pin(self, pid: int) -> None:
        """Write the process id of the filtered program into the filter."""
        for at, which in self._owns:
            _OPERAND.pack_into(self._code, at * _STEP.size + 4, pid if which == _OWN else -pid & 0xFFFFFFFF)


def actions(machine: str) -> dict[int, int]:
    """Return the filter's action by call number, for each call whose action does not depend on the call's arguments."""
    found: dict[int, int] = {}
    for text in syscalls.ALLOWED.values():
        found |= dict.fromkeys(syscalls.numbers(text, machine), _ALLOW)
    found |= dict.fromkeys(syscalls.numbers(syscalls.REFUSED, machine), _REFUSE)
    found |= dict.fromkeys(syscalls.numbers(syscalls.LOCKS, machine), _NO_LOCKS)
    found |= dict.fromkeys(syscalls.numbers(syscalls.ENDED_FOR, machine), _END)
    return found


def build_refusing(machine: str, only: Sequence[str]) -> list[Instruction]:
    """Build the instructions that refuse the given kinds of calls, and allow every other call.

    Calls of the x32 interface return ENOSYS.

    Args:
        machine: Processor architecture.
        only: Kinds of calls to refuse. ``"sockets"``: calls that make sockets other than connected pairs; also
            ``io_uring``, which makes sockets without a system call and therefore returns ENOSYS. ``"ipc"``: calls for
            memory, semaphores and queues of System V, and queues of POSIX. ``"limits"``: calls that set limits of other
            processes, because the kernel sends a signal to a process that exceeds its limit on CPU time.
    """
    steps = [*_checked_architecture(machine), (_JUMP_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _NO_SUCH_CALL)]
    if "ipc" in only:
        steps += _ended(syscalls.numbers(syscalls.IPC, machine), _REFUSE)
    if "limits" in only:
        own = _allow_values(_AT_FIRST, (0,), _REFUSE)
        for number in syscalls.numbers(syscalls.LIMITS_BY_NUMBER, machine):
            steps += [(_JUMP_EQUAL, 0, len(own), number), *own]
    if "sockets" in only:
        connected = _connected_pairs()
        steps += _ended(syscalls.numbers(syscalls.RINGS, machine), _NO_SUCH_CALL)
        steps += _ended(syscalls.numbers(syscalls.SOCKETS, machine), _REFUSE)
        pairs = syscalls.SPECIAL["socketpair"][0 if machine == "x86_64" else 1]
        steps += [(_JUMP_EQUAL, 0, len(connected), pairs), *connected]
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _connected_pairs() -> list[Instruction]:
    """Build instructions that allow only connected pairs of Unix sockets.

    Other sockets could send to any socket that has a name.
    """
    return [
        (_LOAD, 0, 0, _AT_FIRST),
        (_JUMP_EQUAL, 1, 0, commands.AF_UNIX),
        (_RETURN, 0, 0, _REFUSE),
        *_allow_values(_AT_SECOND, commands.SOCKET_PAIRS, _REFUSE, but=commands.SOCKET_FLAGS),
    ]


def _ended(numbers: Sequence[int], action: int) -> list[Instruction]:
    """Build instructions that return ``action`` if the loaded call number is in ``numbers``, and otherwise continue."""
    return [step for number in numbers for step in ((_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, action))]


def _checked_architecture(machine: str) -> list[Instruction]:
    """Build instructions that end a process that makes calls of another architecture, else load the call number."""
    return [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _END),
        (_LOAD, 0, 0, _AT_NUMBER),
    ]


def build(machine: str, needs: Needs | None = None) -> list[Instruction]:
    """Build the filter's instructions: check the architecture, then search for the call's number."""
    needs = needs or Needs()
    column = 0 if machine == "x86_64" else 1
    special = {name: numbers[column] for name, numbers in syscalls.SPECIAL.items()}
    decided: dict[int, list[Instruction]] = {
        special["clone3"]: [(_RETURN, 0, 0, _NO_SUCH_CALL)],
        special["clone"]: _allow_values(_AT_FIRST, commands.CLONE, _REFUSE, but=commands.CLONE_FREE),
        special["socketpair"]: _connected_pairs(),
        special["setsockopt"]: [
            (_LOAD, 0, 0, _AT_SECOND),
            (_JUMP_EQUAL, 1, 0, _SOL_SOCKET),
            (_RETURN, 0, 0, _REFUSE),
            *_allow_values(_AT_THIRD, commands.SETSOCKOPT, _REFUSE),
        ],
        special["ioctl"]: _allow_values(_AT_SECOND, commands.IOCTL, _NO_TERMINAL),
        special["fcntl"]: [
            *_refuse_values(_AT_SECOND, commands.FCNTL_LOCKS, _NO_LOCKS)[:-1],
            *_allow_values(_AT_SECOND, commands.FCNTL, _REFUSE),
        ],
        special["prctl"]: _allow_values(_AT_FIRST, commands.PRCTL, _INVALID),
        special["prlimit64"]: _keep_core_limit(),
        # Pages of shared memory stay in the kernel if a process drops them (MADV_DONTNEED); the watch cannot see them.
        special["mmap"]: _refuse_values(_AT_FOURTH, commands.SHARED_ANONYMOUS, but=~commands.MMAP_KIND),
    }
    if machine == "x86_64":
        decided[special["arch_prctl"]] = _allow_values(_AT_FIRST, commands.ARCH_PRCTL, _INVALID)
    for number in syscalls.numbers(syscalls.SETTING_LIMITS, machine):
        decided[number] = _refuse_values(_AT_FIRST, (_RLIMIT_CORE,))
    decided |= _extra(machine, needs)
    ranges = [(number, number, block) for number, block in decided.items()]
    ranges += [(low, high, [(_RETURN, 0, 0, action)]) for low, high, action in _runs(actions(machine), set(decided))]
    return _checked_architecture(machine) + _search(_leaves(ranges))


def _leaves(ranges: list[_Range]) -> list[tuple[int, list[Instruction]]]:
    """Divide all call numbers into ranges; the instructions of a gap between the given ranges return ENOSYS.

    Returns:
        For each range, in ascending order, its first call number and its instructions.
    """
    leaves: list[tuple[int, list[Instruction]]] = []
    end = 0
    for low, high, block in sorted(ranges, key=lambda found: found[0]):
        if low > end:
            leaves.append((end, [(_RETURN, 0, 0, _NO_SUCH_CALL)]))
        leaves.append((low, block))
        end = high + 1
    return [*leaves, (end, [(_RETURN, 0, 0, _NO_SUCH_CALL)])]


def _search(leaves: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Build a binary search that runs the instructions of the range which contains the loaded call number.

    The kernel runs every new filter once for each call number; with a linear search, this takes much longer.
    """
    if len(leaves) == 1:
        return leaves[0][1]
    middle = len(leaves) // 2
    lower, upper = _search(leaves[:middle]), _search(leaves[middle:])
    first = leaves[middle][0]
    if len(lower) <= _LONGEST_JUMP:
        return [(_JUMP_AT_LEAST, len(lower), 0, first), *lower, *upper]
    return [(_JUMP_AT_LEAST, 0, 1, first), (_JUMP, 0, 0, len(lower)), *lower, *upper]


def _refuse_values(argument: int, values: Iterable[int], action: int = _REFUSE, but: int = 0) -> list[Instruction]:
    """Build instructions that refuse a call (return ``action``) if an argument's lower 32 bits are in ``values``.

    Args:
        argument: Offset of the argument in the data of the call, such as ``_AT_FIRST``.
        values: The refused values.
        action: Result of the filter for these values; for any other value, the call is allowed.
        but: Bits of the argument that are ignored.
    """
    tests = [step for value in values for step in ((_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, action))]
    return [(_LOAD, 0, 0, argument), *_without(but), *tests, (_RETURN, 0, 0, _ALLOW)]


def _allow_values(argument: int, values: Iterable[int], otherwise: int, but: int = 0) -> list[Instruction]:
    """Build instructions that allow a call if an argument's lower 32 bits are in ``values``.

    Args:
        argument: Offset of the argument in the data of the call, such as ``_AT_FIRST``.
        values: The allowed values.
        otherwise: Result of the filter for any other value.
        but: Bits of the argument that are ignored.
    """
    found = sorted(values)
    tests = [(_JUMP_EQUAL, len(found) - at, 0, value) for at, value in enumerate(found)]
    return [(_LOAD, 0, 0, argument), *_without(but), *tests, (_RETURN, 0, 0, otherwise), (_RETURN, 0, 0, _ALLOW)]


def _without(bits: int) -> list[Instruction]:
    return [(_AND, 0, 0, ~bits & 0xFFFFFFFF)] if bits else []


def _keep_core_limit() -> list[Instruction]:
    """Let prlimit64 read, but not set, the core-dump limit: a core dump could be written outside of the sandbox."""
    return [
        (_LOAD, 0, 0, _AT_SECOND),
        (_JUMP_EQUAL, 1, 0, _RLIMIT_CORE),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _AT_THIRD),
        (_JUMP_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _AT_THIRD + 4),  # the upper half of the pointer to the new limit
        (_JUMP_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _extra(machine: str, needs: Needs) -> dict[int, list[Instruction]]:
    """Return the instructions, by call number, for calls that ``needs`` restricts because a layer is missing."""

    def own(argument: int, *also: int) -> list[Instruction]:
        """Allow a call if an argument is the calling process's id, 0 (the same process) or one of ``also``."""
        allowed = (0, _OWN, *also)
        tests = [(_JUMP_EQUAL, len(allowed) - at, 0, value) for at, value in enumerate(allowed)]
        return [(_LOAD, 0, 0, argument), *tests, (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]

    refused: list[Instruction] = [(_RETURN, 0, 0, _REFUSE)]
    lists: list[tuple[str, list[Instruction]]] = []
    if needs.pin:
        lists += [(syscalls.LEAVING, refused), (syscalls.BY_DESCRIPTOR, refused)]
        lists += [
            (syscalls.BY_NUMBER, own(_AT_FIRST)),
            (syscalls.LIMITS_BY_NUMBER, own(_AT_FIRST)[:-1] + _keep_core_limit()),
        ]
        one_process = [(_LOAD, 0, 0, _AT_FIRST), (_JUMP_EQUAL, 1, 0, _PRIO_PROCESS), (_RETURN, 0, 0, _REFUSE)]
        lists.append((syscalls.PRIORITY, one_process + own(_AT_SECOND)))
    if needs.no_signals:
        lists += [(syscalls.SIGNALLING, own(_AT_FIRST, _OWN_GROUP)), (syscalls.SIGNALLING_ANYONE, refused)]
        lists += [(syscalls.SIGNALLING_THREADS, own(_AT_FIRST))]
    if needs.pass_nothing:
        lists += [(syscalls.PASSING, refused)]
    if needs.spare_metadata:
        lists += [(syscalls.METADATA, refused)]
    return {number: block for text, block in lists for number in syscalls.numbers(text, machine)}


def _runs(found: dict[int, int], without: set[int]) -> list[tuple[int, int, int]]:
    """Join consecutive numbers with the same action into ranges (first, last, action); skip numbers in ``without``."""
    runs: list[tuple[int, int, int]] = []
    for number in sorted(found.keys() - without):
        action = found[number]
        if runs and runs[-1][1] == number - 1 and runs[-1][2] == action:
            runs[-1] = (runs[-1][0], number, action)
        else:
            runs.append((number, number, action))
    return runs
