"""``LocalSandbox``: runs each program in a fresh fork of a warm interpreter on this machine, without a daemon.

Covered: the construction of the sandbox. Not covered: the connection to the warden (``client``), and the isolation of
programs (``inside``, docs/sandbox.md).
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
        ConfigurationError: An option is invalid.
        SandboxUnavailableError: The sandbox cannot start, or cannot provide the requested isolation.
    """

    options: LocalOptions

    def __init__(self, **options: Any) -> None:
        checked = LocalOptions.from_mapping(options)
        if not linux.IS_LINUX:
            raise SandboxUnavailableError(
                "The local sandbox isolates programs with features of Linux, which this system does not "
                "have; without them, programs could reach your files and the network. Use the docker or "
                "remote provider."
            )
        super().__init__(checked, lambda: LocalProcess(checked))
