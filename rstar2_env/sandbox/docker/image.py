"""Builds the image of the ``docker`` sandbox, from the Dockerfile in this folder or from the files of this machine.

Covered: the build context; the build through the SDK and through ``docker import``; the fingerprint that shows whether
an image fits this package. Not covered: the list of files of this machine (``host_files``).
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rstar2_env.core.errors import SandboxUnavailableError

if TYPE_CHECKING:
    from docker import APIClient

DEFAULT_TAG = "rstar2-sandbox:latest"
DEFAULT_BASE = "python:3.12-slim"
DEFAULT_PACKAGES = ("numpy", "sympy")
INSIDE_LABEL = "rstar2-env.inside"
HARNESS = "/opt/rstar2-env/inside"
USER = "10001:10001"
_HERE = os.path.dirname(os.path.abspath(__file__))
_INSIDE = os.path.join(os.path.dirname(_HERE), "inside")

PrintLine = Callable[[str], None]


def inside_files() -> Iterator[tuple[str, str]]:
    """Yield, in a fixed order, the path of each source file of the warden: relative to ``inside``, and absolute."""
    for folder, _, names in sorted(os.walk(_INSIDE)):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, _INSIDE), path


@functools.cache
def fingerprint() -> str:
    """Return a hash of the warden's source files, which identifies the version of the warden in an image."""
    digest = hashlib.sha256()
    for name, path in inside_files():
        with open(path, "rb") as file:
            digest.update(name.encode() + b"\0" + hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:16]


def build(
    engine: APIClient,
    tag: str = DEFAULT_TAG,
    base: str = DEFAULT_BASE,
    packages: Sequence[str] = DEFAULT_PACKAGES,
    say: PrintLine = print,
) -> str:
    """Build the image from the Dockerfile, on top of the image ``base``.

    Args:
        engine: The engine that builds the image.
        tag: Name of the image.
        base: An image with Python 3.11 or newer; the engine pulls it if it is missing.
        packages: Packages to install with pip; empty if the base already contains them.
        say: Called with each line of the engine's output.

    Returns:
        The image's id.

    Raises:
        SandboxUnavailableError: The engine could not build the image; the message contains its last lines of output.
    """
    import docker.errors

    arguments = {"BASE": base, "PACKAGES": " ".join(packages), "INSIDE": fingerprint()}
    # pip in the container needs the same proxy as this process.
    proxies = [name for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY") for name in (name, name.lower())]
    arguments |= {name: os.environ[name] for name in proxies if name in os.environ}
    lines: list[str] = []
    try:
        for step in engine.build(
            fileobj=_context(),
            custom_context=True,
            tag=tag,
            buildargs=arguments,
            network_mode=None if packages else "none",
            rm=True,
            forcerm=True,
            decode=True,
        ):
            if text := str(step.get("stream") or step.get("status") or "").rstrip():
                lines.append(text)
                say(text)
            if "error" in step:
                raise SandboxUnavailableError(_failed(tag, base, [*lines, step["error"]]))
    except docker.errors.APIError as error:
        raise SandboxUnavailableError(_failed(tag, base, [*lines, str(error)])) from error
    return str(engine.inspect_image(tag)["Id"])


def _failed(tag: str, base: str, lines: list[str]) -> str:
    output = "\n  ".join(lines[-8:])
    return (
        f"The image {tag!r} could not be built on {base!r}:\n  {output}\n"
        "If no registry can be reached, choose a base that the engine has (--base), or use --from-host, which builds "
        "the image from the Python installation of this machine."
    )


def _context() -> io.BytesIO:
    """Return the build context as a tar archive: the Dockerfile and the warden's source files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(os.path.join(_HERE, "Dockerfile"), "Dockerfile", filter=as_root)
        for name, path in inside_files():
            archive.add(path, f"inside/{name}", filter=as_root)
    packed.seek(0)
    return packed


def build_from_host(
    engine: APIClient, tag: str = DEFAULT_TAG, packages: Sequence[str] = DEFAULT_PACKAGES, say: PrintLine = print
) -> str:
    """Build the image from this machine's Python installation with ``docker import``, without a registry.

    Args:
        engine: The engine that imports the image. Its machine must have the same processor architecture as this one.
        tag: Name of the image.
        packages: Modules that programs can import in addition to the standard library; dependencies are included.
        say: Called with a progress line for each step.

    Returns:
        The image's id.

    Raises:
        ConfigurationError: A package is not installed on this machine.
        SandboxUnavailableError: A file cannot be read, or the engine rejected the image.
    """
    import docker.errors

    from rstar2_env.sandbox.docker.host_files import TEXTS, collect, folders

    tree = collect(packages)
    tree.files |= {f"{HARNESS}/{name}": path for name, path in inside_files()}
    say(f"{len(tree.files)} files of {tree.python} with {', '.join(packages) or 'no packages'}")
    entry = [tree.entry, "-I", "-S", f"{HARNESS}/launch.py", "warden"]
    changes = [
        f"ENTRYPOINT {json.dumps(entry)}",
        f"USER {USER}",
        "WORKDIR /",
        "ENV PATH=/usr/local/bin:/usr/bin:/bin",
        f"LABEL {INSIDE_LABEL}={fingerprint()}",
    ]
    repository, _, version = tag.rpartition(":") if ":" in tag.rpartition("/")[2] else (tag, "", "latest")
    with tempfile.TemporaryFile() as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for folder in folders(tree):
                archive.addfile(_folder(folder))
            for link, target in sorted(tree.links.items()):
                entry_of_link = tarfile.TarInfo(link.lstrip("/"))
                entry_of_link.type, entry_of_link.linkname = tarfile.SYMTYPE, target
                archive.addfile(entry_of_link)
            for place, path in sorted(tree.files.items()):
                archive.add(os.path.realpath(path), place.lstrip("/"), recursive=False, filter=as_root)
            for place, text in TEXTS.items():
                data = text.encode()
                head = tarfile.TarInfo(place.lstrip("/"))
                head.size, head.mode = len(data), 0o644
                archive.addfile(head, io.BytesIO(data))
        say(f"Sending {packed.tell() >> 20} MiB to the Docker daemon")
        packed.seek(0)
        try:
            answer = engine.import_image(src=packed, repository=repository, tag=version, changes=changes)
        except docker.errors.APIError as error:
            raise SandboxUnavailableError(f"The Docker daemon rejected the image {tag!r}: {error}") from error
    steps = [json.loads(line) for line in str(answer).splitlines() if line.strip()]
    if wrong := [step["error"] for step in steps if "error" in step]:
        raise SandboxUnavailableError(f"The Docker daemon rejected the image {tag!r}: {wrong[0]}")
    return str(engine.inspect_image(tag)["Id"])


def _folder(path: str) -> tarfile.TarInfo:
    head = tarfile.TarInfo(path.lstrip("/"))
    head.type, head.mode = tarfile.DIRTYPE, 0o1777 if path == "/tmp" else 0o755
    return head


def as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Filter for ``tarfile``: set a file's owner to root, and make the file readable by all users."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o111 else 0o644
    return entry


def try_imports(engine: APIClient, image: str, modules: Sequence[str]) -> str:
    """Import modules in a container of the image, as the image's user; return the image's Python version.

    Args:
        engine: The engine that has the image.
        image: Name or id of the image.
        modules: Names of the modules to import.

    Raises:
        SandboxUnavailableError: An import fails in the image; the message contains the traceback.
    """
    program = "import sys, site; sys.path += site.getsitepackages(); "
    program += "".join(f"import {name}; " for name in modules) + "print(sys.version.split()[0])"
    config: Any = engine.create_host_config(network_mode="none", read_only=True, cap_drop=["ALL"])
    entry = (engine.inspect_image(image)["Config"].get("Entrypoint") or ["python3"])[0]
    made = engine.create_container(image, entrypoint=[entry, "-I", "-S", "-c", program], host_config=config)["Id"]
    try:
        engine.start(made)
        code = engine.wait(made)["StatusCode"]
        output = engine.logs(made).decode("utf-8", "replace").strip()
    finally:
        engine.remove_container(made, force=True, v=True)
    if code != 0:
        raise SandboxUnavailableError(f"The image {image!r} cannot import {', '.join(modules)}:\n{output[-2000:]}")
    return str(output)
