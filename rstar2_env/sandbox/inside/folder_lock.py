"""Locks on folders; a held lock shows that the process that made the folder still runs."""

from __future__ import annotations

import errno
import fcntl
import os


def lock_folder(folder: str, owner: int | None = None) -> int:
    """Lock a folder until the returned file descriptor is closed, or until this process ends.

    Args:
        folder: Path of an existing folder.
        owner: Id of the user to whom the folder must belong; ``None`` for any user.

    Raises:
        OSError: Another process has locked the folder, the folder was removed, or it belongs to another user.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if owner not in (None, os.fstat(descriptor).st_uid):
            raise OSError(errno.EPERM, "the folder belongs to another user", folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.isdir(folder):
            raise OSError(errno.ENOENT, "the folder no longer exists", folder)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
