"""``rstar2 serve``: serve an environment with the OpenEnv protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from rstar2_env.cli._options import EnvOption, EnvSet, ToolOption, WrapOption
from rstar2_env.cli._printing import say


def serve_command(
    env_id: EnvOption,
    host: Annotated[str, typer.Option(help="Network address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free port.")] = 8000,
    sessions: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of clients at the same time; each client has its own environment."),
    ] = 64,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=1, help="Time without a request after which a client's session ends, in seconds [default: never]."
        ),
    ] = None,
    set_: EnvSet = None,
    tool: ToolOption = None,
    wrap: WrapOption = None,
) -> None:
    """Serve an environment to OpenEnv clients until Ctrl-C or SIGTERM (extra: openenv).

    `rstar2 serve --mcp ID` serves episodes to an assistant instead.

    There is no authentication: any client that can reach the port can play and run programs in the sandbox.
    """
    from rstar2_env.adapters.openenv import serve
    from rstar2_env.cli._options import options_of, with_tools

    serve(
        env_id,
        host=host,
        port=port,
        sessions=sessions,
        session_timeout_s=timeout,
        env_options=options_of(with_tools(set_, tool), "env")["env"],
        wrappers=wrap or (),
        announce=lambda address: say(f"Serving {env_id} on {address}", err=True),
    )
