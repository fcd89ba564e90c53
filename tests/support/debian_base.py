"""A base image for tests, made from Debian's packages: no registry of images is needed.

It is kept in ``build/images`` under a hash of what it is made of, so that the next run imports it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from places import ROOT

TAG = "rstar2-debian-base:latest"
_PACKAGES = "python3,python3-pip,python3-venv,ca-certificates"
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


class NoBaseError(RuntimeError):
    """No base can be made; the text says why."""


def make_debian_base(engine: Any, folder: Path) -> str:
    """Make the image and return its tag.

    Args:
        engine: The SDK's low-level client of the engine.
        folder: Empty; for the system's files.

    Raises:
        NoBaseError: There is no debootstrap, or it cannot reach the archive.
    """
    packed = ROOT / "build" / "images" / f"debian-{_key()}.tar"
    if not packed.exists():
        _pack(folder, packed)
    name, _, version = TAG.partition(":")
    with packed.open("rb") as file:
        engine.import_image_from_data(file, repository=name, tag=version)
    return TAG


def _key() -> str:
    """Hash of this program and of the machine's certificates, which go into the image."""
    files = (Path(__file__), Path("/", _CERTIFICATES))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.exists())).hexdigest()[:16]


def _pack(folder: Path, packed: Path) -> None:
    if shutil.which("debootstrap") is None:
        raise NoBaseError("no debootstrap is installed (apt-get install debootstrap)")
    root = folder / "root"
    command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(root)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    except subprocess.TimeoutExpired as error:
        raise NoBaseError(f"debootstrap took longer than {error.timeout:.0f} s") from error
    # It leaves mounted what another process looks into when it has done.
    for mounted in ("proc", "sys"):
        subprocess.run(["umount", "--recursive", "--lazy", root / mounted], capture_output=True, check=False)
    if done.returncode:
        raise NoBaseError(f"debootstrap failed: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
    # The machine's certificates, and leave for pip to install into this interpreter.
    if Path("/", _CERTIFICATES).exists():
        shutil.copyfile(Path("/", _CERTIFICATES), root / _CERTIFICATES)
    (root / "etc/pip.conf").write_text(f"[global]\nbreak-system-packages = true\ncert = /{_CERTIFICATES}\n")
    shutil.rmtree(root / "var/cache/apt", ignore_errors=True)
    packed.parent.mkdir(parents=True, exist_ok=True)
    part = packed.with_suffix(".part")
    with tarfile.open(part, "w") as file:
        file.add(root, ".")
    part.replace(packed)
    shutil.rmtree(root)
