"""Landlock: file and socket rules that a process lays on itself, a second wall behind the mount namespace.

Covered: reading and executing below the paths given, writing below the working folder alone, no TCP, no abstract Unix
sockets and no signals out of the sandbox (as far as the kernel's version goes). Not covered: what the kernel's Landlock
does not know, such as UDP or changing a file's mode.
"""

from __future__ import annotations

import ctypes
import os

from . import linux

_CREATE_VERSION = 1
_RULE_PATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_IOCTL_DEV = 1 << 15
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
"""Rights on files that each version of the interface handles; from 5 on also ioctl on devices."""
_NET_TCP = 3
_SCOPES = 3


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Version of the kernel's interface.

    Raises:
        OSError: The kernel has no Landlock, or it is switched off.
    """
    return linux.syscall("landlock", linux.SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), _CREATE_VERSION)


class Rules:
    """Rules to be laid on a child. The folders to read are opened here, once."""

    def __init__(self, readable: list[str]) -> None:
        self._version = version()
        self._files = _FILE_RIGHTS.get(self._version, (1 << 15) - 1 | _IOCTL_DEV)
        existing = [path for path in readable if os.path.exists(path)]
        self._folders = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in existing if os.path.isdir(path)]
        self._single = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in existing if not os.path.isdir(path)]
        devices = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
        self._devices = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in devices if os.path.exists(path)]

    def restrict(self, workdir: str) -> None:
        """Lay the rules on this process, for good. ``no_new_privs`` must be set."""
        attributes = (ctypes.c_uint64 * 3)(
            self._files, _NET_TCP if self._version >= 4 else 0, _SCOPES if self._version >= 6 else 0
        )
        size = ctypes.c_size_t(24 if self._version >= 6 else 16 if self._version >= 4 else 8)
        rules = linux.syscall("landlock", linux.SYS_LANDLOCK_CREATE, attributes, size, 0)
        work = os.open(workdir, os.O_PATH | os.O_CLOEXEC)
        for descriptors, rights in (
            (self._folders, _READING),
            (self._single, _EXECUTE | _READ_FILE),
            (self._devices, _READ_FILE | _WRITE_FILE),
            ([work], self._files & ~_IOCTL_DEV),
        ):
            for descriptor in descriptors:
                rule = _Rule(rights & self._files, descriptor)
                linux.syscall("landlock", linux.SYS_LANDLOCK_ADD, rules, _RULE_PATH, ctypes.byref(rule), 0)
        linux.syscall("landlock", linux.SYS_LANDLOCK_RESTRICT, rules, 0)
        os.close(work)
        os.close(rules)
