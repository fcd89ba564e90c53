"""Landlock: kernel rules on files and sockets that a process applies to itself, in addition to the mount namespace.

A process can read and execute files only below given paths, and write only below the working folder and other named
folders. If the kernel's interface has at least version 4, the rules also block TCP; with version 6, they block abstract
Unix sockets, and signals to processes outside of the sandbox. Not covered: operations that Landlock does not control,
such as UDP or changes of a file's mode.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

from . import linux

_CREATE_VERSION = 1
_RULE_PATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
TRUNCATE_VERSION = 3
"""First version of Landlock's interface that can forbid truncating files (Linux 6.2)."""
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
"""Bit mask of the file rights that Landlock controls, by version of its interface; version 5 adds ioctl on devices."""
_DEVICES = ("/dev/null", "/dev/full", "/dev/urandom")  # not /dev/zero: mapping it makes shared anonymous memory
_NET_TCP = 3
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the version of the kernel's Landlock interface.

    Raises:
        OSError: The kernel does not have Landlock, or it is switched off.
    """
    return linux.syscall("landlock", linux.SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), _CREATE_VERSION)


class LandlockRules:
    """Landlock rules for a child process. The parent prepares all rules except the one for the working folder.

    Args:
        readable: Paths below which all files can be read and executed.
        known: Version of the kernel's Landlock interface to use.
        writable: Paths, in addition to the working folder, below which files can be written, read and executed.
        network: Whether TCP and abstract Unix sockets stay allowed.
    """

    def __init__(self, readable: list[str], known: int, *, writable: Sequence[str] = (), network: bool = False) -> None:
        self._files = _FILE_RIGHTS.get(known, (1 << 15) - 1 | _IOCTL_DEV)
        scopes = _SCOPE_SIGNALS if network else _SCOPE_SIGNALS | _SCOPE_ABSTRACT_SOCKETS
        self._call = linux.raw("syscall")
        self._attributes = ctypes.byref(
            (ctypes.c_uint64 * 3)(
                self._files, _NET_TCP if known >= 4 and not network else 0, scopes if known >= 6 else 0
            )
        )
        self._size = 24 if known >= 6 else 16 if known >= 4 else 8
        self._own = _Rule(self._files & ~_IOCTL_DEV, -1)
        rules = [self._rule(path, _READING) for path in readable if os.path.exists(path)]
        rules += [self._rule(path, self._files & ~_IOCTL_DEV) for path in writable]
        rules += [self._rule(device, _READ_FILE | _WRITE_FILE) for device in _DEVICES if os.path.exists(device)]
        self._rules = (*rules, ctypes.byref(self._own))

    def restrict(self, workdir: str) -> None:
        """Apply the rules to this process, irrevocably. ``no_new_privs`` must be set."""
        # Arguments that need no conversion: this runs in every call, where each touched object costs a page.
        call, add, attributes = self._call, linux.SYS_LANDLOCK_ADD, self._attributes
        if (rules := call(linux.SYS_LANDLOCK_CREATE, attributes, self._size, 0)) < 0:
            raise linux.failure("landlock")
        # A rule on a mount point does not apply to the mounted file system.
        self._own.parent = os.open(workdir, os.O_PATH | os.O_CLOEXEC)
        for rule in self._rules:
            if call(add, rules, _RULE_PATH, rule, 0) < 0:
                raise linux.failure("landlock")
        if call(linux.SYS_LANDLOCK_RESTRICT, rules, 0) < 0:
            raise linux.failure("landlock")

    def _rule(self, path: str, rights: int) -> Any:
        if not os.path.isdir(path):
            rights &= _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE
        return ctypes.byref(_Rule(rights & self._files, os.open(path, os.O_PATH | os.O_CLOEXEC)))
