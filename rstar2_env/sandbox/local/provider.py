"""The ``local`` provider: a zygote on this machine, a fresh fork for each call, no daemon.

Covered: how it is put together. The caller's side is in ``client``; what a program can and cannot do is in
``inside`` and in docs/sandbox.md.
"""

from __future__ import annotations

from typing import Any

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox.client import WardenClient
from rstar2_env.sandbox.inside.kernel import linux
from rstar2_env.sandbox.local.process import LocalProcess
from rstar2_env.sandbox.options import LocalOptions


class LocalSandbox(WardenClient):
    """Runs Python programs in isolated forks of a warm interpreter. Safe to call from any thread.

    Args:
        **options: See ``LocalOptions``.

    Raises:
        ConfigurationError: An option is wrong.
        SandboxUnavailableError: It cannot start, or cannot give the isolation that was asked for.
    """

    options: LocalOptions

    def __init__(self, **options: Any) -> None:
        checked = LocalOptions.from_mapping(options)
        if not linux.IS_LINUX:
            raise SandboxUnavailableError(
                "The local sandbox isolates programs with mechanisms of Linux, and this is not Linux: programs could "
                "reach your files and the network. Use the docker or remote provider here."
            )
        super().__init__(checked, lambda: LocalProcess(checked))
