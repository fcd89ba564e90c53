"""``rstar2 sandbox image``: build the image of the docker sandbox."""

from __future__ import annotations

from typing import Annotated

import typer

from rstar2_env.cli._printing import say
from rstar2_env.sandbox.docker import image as docker_image


def image(
    tag: Annotated[str, typer.Option(help="Name of the Docker image to build.")] = docker_image.DEFAULT_TAG,
    base: Annotated[
        str, typer.Option(help="Docker image to build on; it must contain Python 3.11 or newer.")
    ] = docker_image.DEFAULT_BASE,
    from_host: Annotated[
        bool,
        typer.Option(
            "--from-host",
            help="Build the image from the Python installation of this machine, without downloading a base image.",
        ),
    ] = False,
    package: Annotated[
        list[str] | None,
        typer.Option(
            help="Python package that programs can import. Repeat the option to install several [default: numpy, "
            "sympy]."
        ),
    ] = None,
    no_packages: Annotated[
        bool, typer.Option("--no-packages", help="Install no Python packages in the image, not even numpy and sympy.")
    ] = False,
    base_url: Annotated[
        str | None, typer.Option(help="Address of the Docker daemon [default: the default of Docker].")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the id of the image that was built.")] = False,
) -> None:
    """Build the image of the docker sandbox.

    The image contains Python, NumPy, SymPy and the program that runs jobs. Rebuild it after upgrading rstar2-env.

    Exits with 2 if the build fails.
    """
    from rstar2_env.sandbox.docker import engine as docker_engine

    packages = () if no_packages else tuple(package) if package else docker_image.DEFAULT_PACKAGES
    engine = docker_engine.connect(base_url, timeout_s=600)

    def report(text: str) -> None:
        if not quiet:
            say(text, err=True)

    if from_host:
        made = docker_image.build_from_host(engine, tag, packages, report)
    else:
        made = docker_image.build(engine, tag, base, packages, report)
    # A distribution's name may differ from its module's name; images built from the host list modules.
    modules = packages if from_host else [name for name in packages if name in docker_image.DEFAULT_PACKAGES]
    version = docker_image.try_imports(engine, tag, modules)
    say(f"{tag} is ready, with Python {version}. Check it: rstar2 sandbox check --provider docker --set image={tag}")
    say(made)
