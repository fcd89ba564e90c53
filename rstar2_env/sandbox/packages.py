"""Lists the packages that programs can import, for the prompt that describes a sandbox to a policy.

Covered: the packages that the options of a sandbox on this machine declare. Not covered: the packages of a container, a
server or another node, and how other packages are hidden (``inside/kernel/packages``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import Distribution
from typing import Any

from rstar2_env.sandbox.inside.kernel.packages import EVERYTHING
from rstar2_env.sandbox.job import Sandbox
from rstar2_env.sandbox.options import PACKAGES, LocalOptions, site_dirs


def declared(sandbox: Sandbox | str | Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the packages that a sandbox declares; ``None`` if it shows all packages or is not a local sandbox.

    Args:
        sandbox: A sandbox, the name of a provider, or options with the name under ``"provider"``.
    """
    if isinstance(sandbox, Sandbox):
        options = getattr(sandbox, "options", None)
        provider = getattr(options, "provider", None) if isinstance(options, LocalOptions) else None
        names = options.packages if isinstance(options, LocalOptions) else ()
    else:
        given = {"provider": sandbox} if isinstance(sandbox, str) else sandbox
        provider, names = given.get("provider", "local"), tuple(given.get("packages", PACKAGES))
    return None if provider != "local" or EVERYTHING in names else names


@cache
def installed(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the given packages that are installed on this machine, in the same order."""
    return tuple(name for name in packages if any(Distribution.discover(name=name, path=site_dirs())))
