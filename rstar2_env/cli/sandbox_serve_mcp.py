"""``rstar2 sandbox serve-mcp``: the Python tool as an MCP server, for any assistant."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rstar2_env.cli._options import HttpPort, IsolationOption, ProviderSet, limits_of
from rstar2_env.cli._printing import say


def serve_mcp(
    ctx: typer.Context,
    port: HttpPort = None,
    provider: Annotated[
        str, typer.Option(help="Sandbox provider that runs the programs (local, docker, ...).")
    ] = "local",
    set_: ProviderSet = None,
    isolation: IsolationOption = "strict",
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Time limit of each program, in seconds of wall-clock time.")
    ] = 10.0,
    memory: Annotated[int, typer.Option(min=1, help="Memory limit of each program, in MiB.")] = 512,
    max_output: Annotated[
        int, typer.Option(min=1, help="Maximum length of the result that the assistant receives, in characters.")
    ] = 10000,
    workers: Annotated[int, typer.Option(min=1, help="Maximum number of programs that run at the same time.")] = 4,
) -> None:
    """Serve the Python tool to an assistant with the Model Context Protocol (extra: mcp).

    Every program runs in a fresh process of the sandbox, without network and without access to your files.
    """
    from rstar2_env.adapters.mcp_server import serve_tools
    from rstar2_env.core.options.declare import parse_options
    from rstar2_env.sandbox import make_sandbox
    from rstar2_env.tools import PythonTool

    limits = limits_of(ctx, wall_s="timeout", memory_mb="memory")
    options: dict[str, Any] = {"isolation": isolation, "limits": limits, **parse_options(set_ or (), flag="--set ")}
    with make_sandbox(provider, **options) as sandbox:
        serve_tools(
            "rstar2-python",
            [PythonTool(sandbox, limits=limits, max_output=max_output)],
            port=port,
            workers=workers,
            announce=lambda address: say(f"Serving the Python tool on {address}", err=True),
        )
