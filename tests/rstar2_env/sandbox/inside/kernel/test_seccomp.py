"""The system-call filter, run by an interpreter of its code: correct for every architecture, on any machine."""

from __future__ import annotations

import errno

import pytest

from rstar2_env.sandbox.inside.kernel import commands, syscalls
from rstar2_env.sandbox.inside.kernel.seccomp import Instruction, Needs, SeccompFilter, build

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, END, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
PERM, NOSYS, NOLCK = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS, ERRNO | errno.ENOLCK
NOTTY, INVALID = ERRNO | errno.ENOTTY, ERRNO | errno.EINVAL
NEW_USER, NEW_PID, THREAD, SIBLING = 0x10000000, 0x20000000, 0x003D0F00, 0x8000
FORK, SPAWN, OWN_FILES = 0x01200011, 0x4111, 0x400
STREAM, DATAGRAM, RAW, CLOSE_ON_EXEC = 1, 2, 3, 0o2000000
CORE, OPEN_FILES = 4, 7
LOCKS = {6, 7, 37, 38}
"""The commands of fcntl that take a lock (F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW)."""
SET_NAME, SET_VMA = 15, 0x53564D41
"""Options of prctl: the name of a thread, and the name of a mapping of memory."""
POINTERS = (0x7FFF_0000_1000, 0x1_0000_0000, 0x1000)


def answer(
    steps: list[Instruction],
    architecture: int,
    number: int,
    first: int = 0,
    second: int = 0,
    third: int = 0,
    fourth: int = 0,
) -> int:
    """Interpret the filter for one system call."""
    data = {0: number, 4: architecture, 16: first, 24: second, 32: third & 0xFFFFFFFF, 36: third >> 32, 40: fourth}
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == 0x20:
            value = data[operand]
        elif code == 0x54:
            value &= operand
        elif code == 0x06:
            return operand
        elif code == 0x05:
            at += operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand}
            at += if_true if holds[code] else if_false


def number_of(name: str, machine: str) -> int:
    column = {"x86_64": 1, "aarch64": 2}[machine]
    texts = [*syscalls.ALLOWED.values(), syscalls.REFUSED, syscalls.LOCKS, syscalls.ENDED_FOR, syscalls.ABSENT]
    entries = (entry.split() for text in texts for entry in text.split(","))
    return next(int(entry[column]) for entry in entries if entry[0] == name)


@pytest.mark.parametrize("machine", MACHINES)
def test_each_list_gets_its_answer(machine: str) -> None:
    steps = build(machine)
    special = {numbers[0 if machine == "x86_64" else 1] for numbers in syscalls.SPECIAL.values()}
    lists = [(text, ALLOW) for text in syscalls.ALLOWED.values()]
    for text, expected in [*lists, (syscalls.REFUSED, PERM), (syscalls.ENDED_FOR, END)]:
        for number in set(syscalls.numbers(text, machine)) - special:
            assert answer(steps, MACHINES[machine], number) == expected, number


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_in_no_list_does_not_exist(machine: str) -> None:
    texts = [*syscalls.ALLOWED.values(), syscalls.REFUSED, syscalls.LOCKS, syscalls.ENDED_FOR]
    listed = {number for text in texts for number in syscalls.numbers(text, machine)}
    listed |= {numbers[0 if machine == "x86_64" else 1] for numbers in syscalls.SPECIAL.values()}
    steps = build(machine)
    for number in {*range(600), 9999, (1 << 32) - 1} - listed:
        assert answer(steps, MACHINES[machine], number) == NOSYS, number


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_is_in_two_lists(machine: str) -> None:
    texts = [*syscalls.ALLOWED.values(), syscalls.REFUSED, syscalls.LOCKS, syscalls.ENDED_FOR]
    numbers = [number for text in texts for number in syscalls.numbers(text, machine)]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("machine", MACHINES)
def test_threads_are_made_and_namespaces_are_not(machine: str) -> None:
    steps, column = build(machine), 0 if machine == "x86_64" else 1
    clone, clone3 = syscalls.SPECIAL["clone"][column], syscalls.SPECIAL["clone3"][column]
    assert {answer(steps, MACHINES[machine], clone, first=flags) for flags in (THREAD, FORK, SPAWN, 17)} == {ALLOW}
    assert answer(steps, MACHINES[machine], clone, first=THREAD | NEW_PID) == PERM
    assert answer(steps, MACHINES[machine], clone, first=NEW_USER) == PERM
    assert answer(steps, MACHINES[machine], clone, first=SIBLING | 17) == PERM
    # A thread with a table of descriptors of its own would hold files out of sight, a child with another signal at its
    # end would send it.
    assert answer(steps, MACHINES[machine], clone, first=THREAD & ~OWN_FILES) == PERM
    assert answer(steps, MACHINES[machine], clone, first=9) == PERM
    assert answer(steps, MACHINES[machine], clone3) == NOSYS  # EPERM would make threads fail
    assert answer(steps, MACHINES[machine], number_of("unshare", machine), first=NEW_USER) == PERM


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_come_in_local_pairs_alone(machine: str) -> None:
    steps, column = build(machine), 0 if machine == "x86_64" else 1
    pair = syscalls.SPECIAL["socketpair"][column]
    assert answer(steps, MACHINES[machine], pair, first=1, second=STREAM | CLOSE_ON_EXEC) == ALLOW
    # Those of datagrams can send to any name, though they are a pair, and the kernel makes them of raw ones too.
    assert answer(steps, MACHINES[machine], pair, first=1, second=DATAGRAM | CLOSE_ON_EXEC) == PERM
    assert answer(steps, MACHINES[machine], pair, first=1, second=RAW | CLOSE_ON_EXEC) == PERM
    assert {answer(steps, MACHINES[machine], pair, first=family) for family in (2, 10, 16, 40)} == {PERM}
    assert answer(steps, MACHINES[machine], number_of("socket", machine), first=1) == PERM


@pytest.mark.parametrize("machine", MACHINES)
def test_typing_into_a_terminal_is_refused(machine: str) -> None:
    steps, column = build(machine), 0 if machine == "x86_64" else 1
    ioctl = syscalls.SPECIAL["ioctl"][column]
    assert {answer(steps, MACHINES[machine], ioctl, second=request) for request in (0x5412, 0x541C, 0x5423)} == {NOTTY}
    assert answer(steps, MACHINES[machine], ioctl, second=0x5401) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_no_signal_is_sent_by_way_of_a_descriptors_owner(machine: str) -> None:
    steps, column = build(machine), 0 if machine == "x86_64" else 1
    fcntl, ioctl = syscalls.SPECIAL["fcntl"][column], syscalls.SPECIAL["ioctl"][column]
    assert {answer(steps, MACHINES[machine], fcntl, second=command) for command in (8, 10, 15)} == {PERM}
    assert {answer(steps, MACHINES[machine], ioctl, second=request) for request in (0x8901, 0x8902)} == {NOTTY}
    assert answer(steps, MACHINES[machine], fcntl, second=4) == ALLOW


@pytest.mark.parametrize("needs", [Needs(), Needs(pin=True)], ids=["namespaces", "pinned"])
@pytest.mark.parametrize("machine", MACHINES)
def test_no_kernel_memory_that_nothing_counts_is_taken(machine: str, needs: Needs) -> None:
    steps, column = build(machine, needs), 0 if machine == "x86_64" else 1
    fcntl, prctl = syscalls.SPECIAL["fcntl"][column], syscalls.SPECIAL["prctl"][column]
    assert {answer(steps, MACHINES[machine], fcntl, second=command) for command in LOCKS} == {NOLCK}
    assert {answer(steps, MACHINES[machine], fcntl, second=command) for command in (5, 36)} == {ALLOW}  # only reads
    assert answer(steps, MACHINES[machine], number_of("flock", machine)) == NOLCK
    assert answer(steps, MACHINES[machine], number_of("mbind", machine)) == NOSYS
    assert answer(steps, MACHINES[machine], prctl, first=SET_VMA) == INVALID
    assert answer(steps, MACHINES[machine], prctl, first=SET_NAME) == ALLOW


@pytest.mark.parametrize("needs", [Needs(), Needs(pin=True)], ids=["namespaces", "pinned"])
@pytest.mark.parametrize("machine", MACHINES)
def test_no_process_gets_a_session_of_its_own(machine: str, needs: Needs) -> None:
    assert answer(build(machine, needs), MACHINES[machine], number_of("setsid", machine)) == PERM


@pytest.mark.parametrize("needs", [Needs(), Needs(pin=True)], ids=["namespaces", "pinned"])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_limit_on_core_dumps_is_read_and_not_set(machine: str, needs: Needs) -> None:
    steps, column = build(machine, needs), 0 if machine == "x86_64" else 1
    prlimit, setrlimit = syscalls.SPECIAL["prlimit64"][column], syscalls.numbers(syscalls.SETTING_LIMITS, machine)[0]
    assert answer(steps, MACHINES[machine], prlimit, second=CORE) == ALLOW
    assert {answer(steps, MACHINES[machine], prlimit, second=CORE, third=new) for new in POINTERS} == {PERM}
    assert answer(steps, MACHINES[machine], prlimit, second=OPEN_FILES, third=POINTERS[0]) == ALLOW
    assert answer(steps, MACHINES[machine], setrlimit, first=CORE) == PERM
    assert answer(steps, MACHINES[machine], setrlimit, first=OPEN_FILES) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_is_shared_through_files_alone(machine: str) -> None:
    steps, mmap = build(machine), syscalls.SPECIAL["mmap"][0 if machine == "x86_64" else 1]
    shared, private, validated, anonymous, populated = 0x01, 0x02, 0x03, 0x20, 0x8000
    for refused in (shared | anonymous, validated | anonymous, shared | anonymous | populated):
        assert answer(steps, MACHINES[machine], mmap, fourth=refused) == PERM
    for allowed in (shared, private, private | anonymous, private | anonymous | populated, shared | populated):
        assert answer(steps, MACHINES[machine], mmap, fourth=allowed) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_without_a_process_namespace_priorities_are_those_of_one_process(machine: str) -> None:
    steps = build(machine, Needs(pin=True))
    setpriority, _ = syscalls.numbers(syscalls.PRIORITY, machine)
    assert answer(steps, MACHINES[machine], setpriority, first=0) == ALLOW
    assert {answer(steps, MACHINES[machine], setpriority, first=which) for which in (1, 2)} == {PERM}
    assert answer(steps, MACHINES[machine], setpriority, first=0, second=4321) == PERM


def test_another_architectures_calls_end_the_program() -> None:
    assert answer(build("x86_64"), 0x40000003, 1) == END  # 32-bit calls on a 64-bit kernel have other numbers
    assert answer(build("x86_64"), MACHINES["x86_64"], 0x40000000 + 59) == NOSYS


def test_an_unknown_processor_is_told() -> None:
    with pytest.raises(OSError, match="sparc"):
        SeccompFilter("sparc")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "argument", "allowed", "refusal"),
    [
        ("ioctl", "second", commands.IOCTL, NOTTY),
        ("fcntl", "second", commands.FCNTL, PERM),
        ("prctl", "first", commands.PRCTL, INVALID),
    ],
)
def test_commands_that_are_in_no_list_are_refused(
    machine: str, call: str, argument: str, allowed: dict[int, str], refusal: int
) -> None:
    steps, number = build(machine), syscalls.SPECIAL[call][0 if machine == "x86_64" else 1]
    others = {*range(100), *range(1024, 1100), *range(0x5400, 0x5500)} - (LOCKS if call == "fcntl" else set())
    for command in {*others, 0x40086602, 0xC0045877, *allowed}:
        expected = ALLOW if command in allowed else refusal
        assert answer(steps, MACHINES[machine], number, **{argument: command}) == expected, hex(command)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_socket_gets_no_larger_buffer(machine: str) -> None:
    steps, number = build(machine), syscalls.SPECIAL["setsockopt"][0 if machine == "x86_64" else 1]
    assert answer(steps, MACHINES[machine], number, second=1, third=2) == ALLOW
    assert {answer(steps, MACHINES[machine], number, second=1, third=option) for option in (7, 8, 32, 33)} == {PERM}
    assert answer(steps, MACHINES[machine], number, second=6, third=2) == PERM


@pytest.mark.parametrize("machine", MACHINES)
def test_descriptors_are_passed_only_where_something_counts_what_is_in_flight(machine: str) -> None:
    number = number_of("sendmsg", machine)
    assert answer(build(machine), MACHINES[machine], number) == ALLOW
    assert answer(build(machine, Needs(pass_nothing=True)), MACHINES[machine], number) == PERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_missing_layer_allows_no_call_that_the_lists_do_not(machine: str) -> None:
    steps = build(machine, Needs(pin=True, no_signals=True, spare_metadata=True, pass_nothing=True))
    allowed = {number for text in syscalls.ALLOWED.values() for number in syscalls.numbers(text, machine)}
    allowed |= {numbers[0 if machine == "x86_64" else 1] for numbers in syscalls.SPECIAL.values()}
    open_now = {number for number in range(600) if answer(steps, MACHINES[machine], number) == ALLOW}
    assert open_now <= allowed
