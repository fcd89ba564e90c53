"""``rstar2 sandbox serve``: serve the sandbox over HTTP, to the ``remote`` provider and to code-judge clients."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rstar2_env.cli._options import IsolationOption, ProviderSet
from rstar2_env.cli._printing import say


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 chooses a free port.")] = 8700,
    token: Annotated[
        str | None, typer.Option(help="Token for clients. Visible to other users of this machine: prefer --token-file.")
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(help="File with the token [default: the variable RSTAR2_SANDBOX_TOKEN].")
    ] = None,
    provider: Annotated[str, typer.Option(help="Sandbox provider that runs the programs.")] = "local",
    set_: ProviderSet = None,
    workers: Annotated[
        int | None, typer.Option(help="Maximum number of concurrent programs [default: one per core].")
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(help="Number of concurrent programs to report to clients [default: as the provider reports]."),
    ] = None,
    isolation: IsolationOption = "strict",
    queue: Annotated[int, typer.Option(help="Maximum number of queued calls; further calls get status 429.")] = 1024,
    max_timeout: Annotated[float, typer.Option(help="Upper bound of a call's wall-clock limit, in seconds.")] = 60.0,
    max_memory: Annotated[int, typer.Option(help="Upper bound of a call's memory limit, in MiB.")] = 4096,
    max_processes: Annotated[int, typer.Option(help="Upper bound of a call's process limit.")] = 256,
    max_output: Annotated[int, typer.Option(help="Upper bound of a call's output limit, in bytes.")] = 16 << 20,
    max_files: Annotated[int, typer.Option(help="Largest file limit that a call may request, in MiB.")] = 1024,
    max_request: Annotated[float, typer.Option(help="Maximum size of one request, in MiB.")] = 64.0,
    judge_timeout: Annotated[float, typer.Option(help="Wall-clock limit of code-judge requests, in seconds.")] = 10.0,
    judge_memory: Annotated[int, typer.Option(help="Memory limit of code-judge requests, in MiB.")] = 512,
    drain_timeout: Annotated[
        float, typer.Option(help="Time limit of calls in flight after SIGTERM, in seconds.")
    ] = 30.0,
    tls_cert: Annotated[str | None, typer.Option(help="Certificate file, for HTTPS.")] = None,
    tls_key: Annotated[str | None, typer.Option(help="Private key file of the certificate.")] = None,
) -> None:
    """Serve a sandbox over HTTP until SIGTERM.

    A token is required to listen on addresses other than localhost. Clients: make_sandbox("remote", url=...,
    token=...), or code-judge clients.
    """
    from rstar2_env.core.options.declare import parse_options
    from rstar2_env.sandbox.limits import Limits
    from rstar2_env.sandbox.serve.main import read_token, serve
    from rstar2_env.sandbox.serve.options import ServeOptions

    options = ServeOptions(
        host=host,
        port=port,
        token=read_token(token, token_file),
        queue=queue,
        slots=slots,
        max_limits=Limits(
            wall_s=max_timeout,
            cpu_s=2 * max_timeout,
            memory_mb=max_memory,
            processes=max_processes,
            output_bytes=max_output,
            file_mb=max_files,
        ),
        judge_limits=Limits(wall_s=judge_timeout, memory_mb=judge_memory),
        max_request_mb=max_request,
        drain_timeout_s=drain_timeout,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )
    provider_options: dict[str, Any] = {"isolation": isolation, **parse_options(set_ or ())}
    if workers is not None:
        provider_options["workers"] = workers

    def announce(address: str) -> None:
        say(f"Serving the sandbox {provider!r} on {address}", err=True)

    serve(options, provider, provider_options, announce=announce)
