"""``rstar2 sandbox image``: the image that the docker sandbox runs."""

from __future__ import annotations

from typing import Annotated

import typer

from rstar2_env.sandbox.docker import image as docker_image


def image(
    tag: Annotated[str, typer.Option(help="Name of the image.")] = docker_image.DEFAULT_TAG,
    base: Annotated[
        str, typer.Option(help="An image with Python 3.11 or newer to build on.")
    ] = docker_image.DEFAULT_BASE,
    from_host: Annotated[
        bool, typer.Option("--from-host", help="Build from this machine's Python, without a registry.")
    ] = False,
    package: Annotated[
        list[str] | None,
        typer.Option(help="Package that programs can import; may be given again [default: numpy, sympy]"),
    ] = None,
    no_packages: Annotated[bool, typer.Option("--no-packages", help="Add no packages to the base image.")] = False,
    base_url: Annotated[str | None, typer.Option(help="Address of the Docker engine [default: the usual one].")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the image's id.")] = False,
) -> None:
    """Build the image of the docker sandbox.

    It holds Python, NumPy and SymPy, and the program that runs jobs. Build it anew after an upgrade of rstar2-env.

    Exits with 2 when it cannot be built.
    """
    from rstar2_env.sandbox.docker import engine as docker_engine

    packages = () if no_packages else tuple(package) if package else docker_image.DEFAULT_PACKAGES
    engine = docker_engine.connect(base_url, timeout=600)

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    if from_host:
        made = docker_image.build_from_host(engine, tag, packages, say)
    else:
        made = docker_image.build(engine, tag, base, packages, say)
    # A distribution's name need not be a module's; those of a host's image are modules.
    modules = packages if from_host else [name for name in packages if name in docker_image.DEFAULT_PACKAGES]
    version = docker_image.try_imports(engine, tag, modules)
    say(f"{tag} is ready, with Python {version}: rstar2 sandbox check --provider docker --set image={tag}")
    typer.echo(made)
