"""``rstar2 sandbox serve``: serve the sandbox over HTTP, to the ``remote`` provider and to code-judge clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from rstar2_env.cli._options import IsolationOption, ProviderSet, given_by, limits_of
from rstar2_env.cli._printing import say
from rstar2_env.sandbox.limits import CEILING


def serve(
    ctx: typer.Context,
    host: Annotated[str, typer.Option(help="Network address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 chooses a free port.")] = 8700,
    token: Annotated[
        str | None,
        typer.Option(
            help="Secret token that clients must send. Other users of this machine can see it in the list of "
            "processes: prefer --token-file."
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            help="File that holds the token that clients must send [default: the value of the variable "
            "RSTAR2_SANDBOX_TOKEN]."
        ),
    ] = None,
    provider: Annotated[
        str, typer.Option(help="Sandbox provider that runs the programs (local, docker, ...).")
    ] = "local",
    set_: ProviderSet = None,
    workers: Annotated[
        int | None, typer.Option(help="Maximum number of programs that run at the same time [default: one per core].")
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            help="Number of concurrent programs that the server announces to its clients [default: the number "
            "that the provider reports]."
        ),
    ] = None,
    isolation: IsolationOption = "strict",
    queue: Annotated[
        int,
        typer.Option(
            help="Maximum number of calls that wait in the queue; further calls are refused with HTTP status 429."
        ),
    ] = 1024,
    max_timeout: Annotated[
        float,
        typer.Option(help="Longest time limit that a client may request for a program, in seconds of wall-clock time."),
    ] = CEILING.wall_s,
    max_memory: Annotated[
        int, typer.Option(help="Largest memory limit that a client may request for a program, in MiB.")
    ] = CEILING.memory_mb,
    max_processes: Annotated[
        int, typer.Option(help="Largest limit on processes that a client may request for a program.")
    ] = CEILING.processes,
    max_output: Annotated[
        int, typer.Option(help="Largest output limit that a client may request for a program, in bytes.")
    ] = CEILING.output_bytes,
    max_files: Annotated[
        int,
        typer.Option(help="Largest limit on the total size of a program's files that a client may request, in MiB."),
    ] = CEILING.file_mb,
    max_request: Annotated[float, typer.Option(help="Maximum size of one HTTP request, in MiB.")] = 64.0,
    judge_timeout: Annotated[
        float,
        typer.Option(
            help="Time limit of each program that arrives through the code-judge API (docs/code-judge.md), in seconds "
            "of wall-clock time."
        ),
    ] = 10.0,
    judge_memory: Annotated[
        int, typer.Option(help="Memory limit of each program that arrives through the code-judge API, in MiB.")
    ] = 512,
    drain_timeout: Annotated[
        float,
        typer.Option(help="Time that running programs get to finish after the server receives SIGTERM, in seconds."),
    ] = 30.0,
    tls_cert: Annotated[
        str | None, typer.Option(help="File with the TLS certificate; the server then uses HTTPS.")
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option(help="File with the private key of the certificate in --tls-cert.")
    ] = None,
) -> None:
    """Serve a sandbox over HTTP until SIGTERM.

    A token is required to listen on addresses other than localhost. Clients: make_sandbox("remote", url=...,
    token=...), or code-judge clients.
    """
    from rstar2_env.core.options.declare import call_with_options, parse_options
    from rstar2_env.sandbox.limits import LONGEST_S
    from rstar2_env.sandbox.serve.main import read_token, serve
    from rstar2_env.sandbox.serve.options import ServeOptions

    highest = limits_of(
        ctx,
        wall_s="max_timeout",
        memory_mb="max_memory",
        processes="max_processes",
        output_bytes="max_output",
        file_mb="max_files",
    )
    given = given_by(ctx, port="port", queue="queue", slots="slots", max_request_mb="max_request")
    given |= given_by(ctx, drain_timeout_s="drain_timeout")
    options = call_with_options(
        "sandbox server",
        ServeOptions,
        {
            **given,
            "host": host,
            "token": read_token(token, token_file),
            "max_limits": replace(highest, cpu_s=min(2 * max_timeout, LONGEST_S)),
            "judge_limits": limits_of(ctx, wall_s="judge_timeout", memory_mb="judge_memory"),
            "tls_cert": tls_cert,
            "tls_key": tls_key,
        },
    )
    provider_options: dict[str, Any] = {"isolation": isolation, **parse_options(set_ or (), flag="--set ")}
    if workers is not None:
        provider_options |= given_by(ctx, workers="workers")

    def announce(address: str) -> None:
        say(f"Serving the sandbox {provider!r} on {address}", err=True)

    serve(options, provider, provider_options, announce=announce)
