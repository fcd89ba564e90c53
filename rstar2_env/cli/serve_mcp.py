"""``rstar2 serve --mcp``: serve episodes of an environment with the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from rstar2_env.cli._options import EnvSet, HttpPort, ToolOption, WrapOption
from rstar2_env.cli._printing import say


def serve_mcp_command(
    env_id: Annotated[
        str,
        typer.Argument(
            metavar="--mcp ID",
            help="Environment: a Gymnasium id (rstar2/MathTool-v0), or your own environment in a file "
            "(./mine.py:mine/Divisors-v0).",
        ),
    ],
    port: HttpPort = None,
    episodes: Annotated[
        int,
        typer.Option(
            min=1, help="Maximum number of episodes that run at the same time; each episode has its own environment."
        ),
    ] = 16,
    timeout: Annotated[
        float,
        typer.Option(
            min=1, help="Time without a step after which an episode may be ended to make room for another, in seconds."
        ),
    ] = 1800.0,
    set_: EnvSet = None,
    tool: ToolOption = None,
    wrap: WrapOption = None,
) -> None:
    """Serve episodes to an assistant, as the tools reset, step and state of an MCP server (extra: mcp)."""
    from rstar2_env.adapters.mcp_server import serve_env
    from rstar2_env.cli._options import options_of, with_tools

    serve_env(
        env_id,
        env_options=options_of(with_tools(set_, tool), "env")["env"],
        wrappers=wrap or (),
        episodes=episodes,
        timeout_s=timeout,
        port=port,
        announce=lambda address: say(f"Serving {env_id} on {address}", err=True),
    )
