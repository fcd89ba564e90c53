"""Allow-lists of commands, options and flags for system calls that are allowed only with certain arguments.

Each entry occurs in a system-call trace of the tests of CPython, NumPy and SymPy (``tools/trace_calls.py``), or is the
counterpart of such an entry (the getter of a setter). The numbers of commands, options and flags are part of the
kernel's interface, and the same on x86-64 and arm64. The lists exclude, for example, commands that insert terminal
input or change line disciplines (TIOCSTI, TIOCLINUX, TIOCSETD), set flags of files (FS_IOC_SETFLAGS), send signals to
the owner of a descriptor (F_SETOWN), or hide a process from the checks of ``zygote.watch`` (PR_SET_DUMPABLE). They also
exclude commands that use uncounted memory: larger pipes and socket buffers, which only a control group counts
(F_SETPIPE_SZ, SO_SNDBUF), and names of memory mappings, which nothing counts (PR_SET_VMA).
"""

from __future__ import annotations

IOCTL = {
    0x5401: "TCGETS",
    0x540F: "TIOCGPGRP",
    0x5413: "TIOCGWINSZ",
    0x541B: "FIONREAD",
    0x5421: "FIONBIO",
    0x5450: "FIONCLEX",
    0x5451: "FIOCLEX",
}
"""Allowed commands of ``ioctl``. Other commands return ENOTTY, as for a descriptor that does not support them."""
FCNTL = {
    0: "F_DUPFD",
    1: "F_GETFD",
    2: "F_SETFD",
    3: "F_GETFL",
    4: "F_SETFL",
    5: "F_GETLK",
    9: "F_GETOWN",
    36: "F_OFD_GETLK",
    1030: "F_DUPFD_CLOEXEC",
    1032: "F_GETPIPE_SZ",
}
FCNTL_LOCKS = {6: "F_SETLK", 7: "F_SETLKW", 37: "F_OFD_SETLK", 38: "F_OFD_SETLKW"}
"""Commands of ``fcntl`` that return ENOLCK: a program can hold any number of locks, and no control group counts their
memory."""
PRCTL = {
    1: "PR_SET_PDEATHSIG",
    2: "PR_GET_PDEATHSIG",
    3: "PR_GET_DUMPABLE",
    15: "PR_SET_NAME",
    16: "PR_GET_NAME",
    21: "PR_GET_SECCOMP",
    23: "PR_CAPBSET_READ",
    38: "PR_SET_NO_NEW_PRIVS",
    39: "PR_GET_NO_NEW_PRIVS",
}
"""Allowed options of ``prctl``. Other options return EINVAL, as on a kernel that does not support them."""
ARCH_PRCTL = {0x1002: "ARCH_SET_FS", 0x1003: "ARCH_GET_FS", 0x3001: "ARCH_CET_STATUS"}
SETSOCKOPT = {2: "SO_REUSEADDR", 9: "SO_KEEPALIVE", 13: "SO_LINGER", 20: "SO_RCVTIMEO", 21: "SO_SNDTIMEO"}
"""Allowed options of ``setsockopt``, on the level SOL_SOCKET."""

AF_UNIX = 1
SOCKET_PAIRS = {1: "SOCK_STREAM", 5: "SOCK_SEQPACKET"}
"""Allowed types of ``socketpair``. Other types (SOCK_DGRAM, SOCK_RAW) create datagram sockets, which could send to any
socket that has a name."""
SOCKET_FLAGS = 0o2000000 | 0o4000
"""Flags allowed in the type of a socket: SOCK_CLOEXEC and SOCK_NONBLOCK."""

MMAP_KIND = 0x0F | 0x20
"""The bits of ``mmap``'s flags that define the kind of mapping: MAP_TYPE and MAP_ANONYMOUS."""
SHARED_ANONYMOUS = {0x21: "MAP_SHARED | MAP_ANONYMOUS", 0x23: "MAP_SHARED_VALIDATE | MAP_ANONYMOUS"}
"""Flags with which the filter refuses ``mmap``: they create shared anonymous memory, which belongs to no process, so
only a control group counts it."""

CLONE = {0x0D0F00: "a thread", 0x11: "fork", 0x4111: "vfork and posix_spawn"}
"""Allowed combinations of flags of ``clone``. Other flags would, for example, give a thread its own file descriptors,
give a process another parent or another exit signal, or create namespaces."""
CLONE_FREE = 0x01300000 | 0x00400000
"""Flags of ``clone`` that are always allowed, since they do not affect isolation: the flags that set the addresses of
thread ids, and CLONE_DETACHED."""

SEEN_AND_REFUSED = {
    "ioctl": {
        0x5402: "TCSETS",
        0x5404: "TCSETSF",
        0x540E: "TIOCSCTTY",
        0x5410: "TIOCSPGRP",
        0x5441: "TIOCGPTPEER",
        0x5452: "FIOASYNC",
        0x40045431: "TIOCSPTLCK",
        0x80045430: "TIOCGPTN",
    },
    "fcntl": {**FCNTL_LOCKS, 1031: "F_SETPIPE_SZ", 1033: "F_ADD_SEALS", 1034: "F_GET_SEALS"},
    "prctl": {},
    "arch_prctl": {},
}
"""Commands that tools/trace_calls.py recorded but that are refused, by system call: commands for terminals and
pseudo-terminals (which do not exist in the sandbox), signals about input (FIOASYNC), larger pipes, file seals, and
locks."""
