"""``rstar2 sandbox serve``: the sandbox as a service, for the ``remote`` provider and for code-judge's clients."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rstar2_env.cli._options import ProviderSet


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8700,
    token: Annotated[
        str | None, typer.Option(help="Token of the clients. Other users can see it here: prefer --token-file.")
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(help="File that holds the token. Without either: the variable RSTAR2_SANDBOX_TOKEN.")
    ] = None,
    provider: Annotated[str, typer.Option(help="The sandbox that runs the programs.")] = "local",
    set_: ProviderSet = None,
    workers: Annotated[int | None, typer.Option(help="Programs that run at once; the default is one per core.")] = None,
    slots: Annotated[
        int | None, typer.Option(help="Programs that the provider runs at once, with several containers or nodes.")
    ] = None,
    isolation: Annotated[
        str,
        typer.Option(help="strict: refuse to start without a required layer; best: use the layers there are; none."),
    ] = "strict",
    queue: Annotated[int, typer.Option(help="Calls that may wait; further ones get status 429.")] = 1024,
    max_wall: Annotated[float, typer.Option(help="Most seconds of wall clock that a call may ask for.")] = 60.0,
    max_memory: Annotated[int, typer.Option(help="Most MiB of memory that a call may ask for.")] = 4096,
    max_processes: Annotated[int, typer.Option(help="Most processes that a call may ask for.")] = 256,
    max_output: Annotated[int, typer.Option(help="Most bytes of output that a call may ask for.")] = 16 << 20,
    max_files: Annotated[int, typer.Option(help="Most MiB of files that a call may ask for.")] = 1024,
    max_request: Annotated[float, typer.Option(help="Most MiB that one request may hold.")] = 64.0,
    judge_wall: Annotated[float, typer.Option(help="Seconds of wall clock of code-judge's requests.")] = 10.0,
    judge_memory: Annotated[int, typer.Option(help="MiB of memory of code-judge's requests.")] = 512,
    drain: Annotated[float, typer.Option(help="Seconds that calls in flight get to finish after SIGTERM.")] = 30.0,
    tls_cert: Annotated[str | None, typer.Option(help="Certificate file, for HTTPS.")] = None,
    tls_key: Annotated[str | None, typer.Option(help="Key file of the certificate.")] = None,
) -> None:
    """Serve a sandbox over HTTP until SIGTERM.

    Listening beyond this machine needs a token. Clients: make_sandbox("remote", url=..., token=...), or code-judge's.
    """
    from rstar2_env.core.options.declare import parse_options
    from rstar2_env.sandbox.job import Limits
    from rstar2_env.sandbox.serve.main import read_token, serve
    from rstar2_env.sandbox.serve.options import ServeOptions

    options = ServeOptions(
        host=host,
        port=port,
        token=read_token(token, token_file),
        queue=queue,
        slots=slots,
        max_limits=Limits(
            wall_s=max_wall,
            cpu_s=2 * max_wall,
            memory_mb=max_memory,
            processes=max_processes,
            output_bytes=max_output,
            file_mb=max_files,
        ),
        judge_limits=Limits(wall_s=judge_wall, memory_mb=judge_memory),
        max_request_mb=max_request,
        drain_s=drain,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )
    given: dict[str, Any] = {"isolation": isolation, **parse_options(set_ or ())}
    if workers is not None:
        given["workers"] = workers

    def announce(address: str) -> None:
        typer.echo(f"Serving the sandbox {provider!r} on {address}", err=True)

    serve(options, provider, given, announce=announce)
