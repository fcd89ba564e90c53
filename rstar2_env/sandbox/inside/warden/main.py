"""Starts the warden, the process between the caller and the model's programs.

The warden is a separate process, so that locks, imports and the global interpreter lock of the caller cannot delay a
deadline. When the caller ends, the warden and all its processes end too. Covered: start and shutdown. Not covered: how
jobs run (``supervisor``).
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import site
from functools import partial

from ..kernel import layers, linux
from ..tidy import remove_tree
from .caller_link import CallerLink
from .parents import Parents
from .slot import ChildSlot
from .supervisor import WardenSupervisor
from .zygote_link import ZygoteLink

_DESCRIPTORS = 1 << 16


def main() -> None:
    """Read the options, find the layers of isolation that work, start the zygote, and run jobs."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the caller's thread may have blocked signals, as Ray's threads do
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    linux.die_with_parent(signal.SIGTERM)
    caller = CallerLink.take_standard_streams()
    options = caller.first()
    if options is None:
        return
    if options["site_dirs"] is None:  # in a container, only the warden can determine them
        options["site_dirs"] = [os.path.realpath(path) for path in site.getsitepackages() if os.path.isdir(path)]
    os.makedirs(os.path.join(options["scratch"], "root"), exist_ok=True)
    _allow_descriptors()
    found = layers.find(options)
    try:
        if options["isolation"] == "strict" and (broken := found.broken()):
            raise RuntimeError(
                "isolation='strict' requires layers of isolation that this machine does not provide: "
                f"{'; '.join(broken)}."
            )
        zygote = ZygoteLink(options, found)
        try:
            parents = Parents(options, zygote)
        except RuntimeError:
            zygote.close()
            raise
        if options.get("guard"):
            linux.set_dumpable(False)  # programs of the same user cannot inspect this process or open its files
        scratch = None if "mount" in found.plan.namespaces else options["scratch"]
        if scratch is not None:
            os.chmod(scratch, 0o711)  # the separate users need access to their folders
        plan = found.plan
        make_slot = partial(
            ChildSlot, groups=found.groups, scratch=scratch, counted=plan.counted, own_user=plan.users_from > 0
        )
        greeting = {"op": "started", "zygote_pid": parents.first.link.pid, "capabilities": found.capabilities()}
        supervisor = WardenSupervisor(caller, options, parents, make_slot, greeting)
    except (OSError, RuntimeError) as error:
        caller.send({"op": "failed", "error": str(error)})
        return
    gc.freeze()
    gc.set_threshold(50_000)  # collect rarely, since calls do not create reference cycles
    signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())  # the caller is gone: stop and clean up
    try:
        supervisor.serve()
    finally:
        parents.close()
        zygote.close()
        supervisor.close()
        if found.groups is not None:
            found.groups.close()
        remove_tree(options["scratch"])


def _allow_descriptors() -> None:
    """Raise the soft limit on open files to the hard limit: every child and every session needs several descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else max(soft, _DESCRIPTORS)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(soft, _DESCRIPTORS)), hard))
