"""``make_sandbox``: creates sandboxes by the name of their provider; ``PROVIDERS``: the registry of providers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rstar2_env.core.options.registry import Registry
from rstar2_env.sandbox.job import Sandbox

PROVIDERS: Registry[Callable[..., Sandbox]] = Registry("sandbox", entry_points="rstar2_env.sandboxes", named_alone=True)
"""Every provider: a callable that takes its options by keyword and returns a running ``Sandbox``.

The command line passes ``isolation`` and ``limits`` (see ``LocalOptions``) to every provider.
"""


# Each provider is imported on first use; making an environment needs none of them.
@PROVIDERS.register("local")
def _local(**options: Any) -> Sandbox:
    from rstar2_env.sandbox.local.provider import LocalSandbox

    return LocalSandbox(**options)


@PROVIDERS.register("docker")
def _docker(**options: Any) -> Sandbox:
    from rstar2_env.sandbox.docker.provider import DockerSandbox

    return DockerSandbox(**options)


@PROVIDERS.register("remote")
def _remote(**options: Any) -> Sandbox:
    from rstar2_env.sandbox.remote.provider import RemoteSandbox

    return RemoteSandbox(**options)


@PROVIDERS.register("ray")
def _ray(**options: Any) -> Sandbox:
    from rstar2_env.sandbox.ray.provider import RaySandbox

    return RaySandbox(**options)


def make_sandbox(provider: str = "local", **options: Any) -> Sandbox:
    """Create a sandbox for this caller alone. Use it as a context manager, or close it.

    Args:
        provider: Name of a registered provider.
        **options: Options of the provider; for ``local`` see ``LocalOptions``.

    Raises:
        UnknownNameError: No provider has that name.
        ConfigurationError: An option is invalid.
        SandboxUnavailableError: The sandbox cannot start, or cannot provide the requested isolation.
    """
    return PROVIDERS.get(provider)(**options)
