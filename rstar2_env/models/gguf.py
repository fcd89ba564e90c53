"""Recognizes GGUF files, the format of llama.cpp, and converts them to ordinary model folders.

transformers dequantizes the weights to float32; the values are those that the quantized file represents. Not covered:
files in several parts, vision projectors, and architectures that transformers cannot read.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.files.outputs import MANIFEST, begin_folder, files_in, list_files
from rstar2_env.core.progress import progress

SOURCE_FILE = "source.json"
"""Name of a file in a converted folder; it describes the GGUF file from which the folder was made."""
_MAGIC = b"GGUF"
_PART = re.compile(r"-\d{5}-of-\d{5}$")


def is_gguf(model: Any) -> bool:
    """Return whether a model's name is the path of an existing file that ends in ``.gguf``."""
    return isinstance(model, (str, os.PathLike)) and Path(model).suffix == ".gguf" and Path(model).is_file()


def folder_beside(file: Path) -> Path:
    """Return the folder to which a GGUF file is converted when it is loaded: the file's path without ``.gguf``."""
    return file.with_suffix("")


def check_gguf(file: Path) -> None:
    """Check that a file can be a model in GGUF format; only its first bytes are read.

    Raises:
        ConfigurationError: The file is not a GGUF file, or it is one part of a model in several files.
    """
    with file.open("rb") as stream:
        start = stream.read(4)
    if start != _MAGIC:
        raise ConfigurationError(
            f"{file} is not a GGUF file: it starts with {start!r}, not with {_MAGIC!r}. Download it again.",
            option="model",
        )
    if _PART.search(file.stem):
        raise ConfigurationError(
            f"{file} is one part of a model in several GGUF files, which transformers cannot read: join them with "
            "llama-gguf-split --merge, and name the joined file.",
            option="model",
        )


def read_gguf(file: Path) -> Any:
    """Read the metadata of a GGUF file with the package ``gguf``; return its ``GGUFReader``.

    Raises:
        ConfigurationError: The file cannot be read.
        MissingExtraError: ``gguf`` is not installed.
    """
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise MissingExtraError("gguf", f"The GGUF file {file}") from error

    class Reader(GGUFReader):  # type: ignore[misc]  # the package has no types
        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
            # If a file announces more values than it holds, ``GGUFReader`` would append empty values without end.
            found = super()._get(offset, dtype, count, override_order)
            if len(found) < int(count):
                raise ValueError("it ends before its last value")
            return found

    try:
        return Reader(str(file))
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise ConfigurationError(
            f"The GGUF file {file} cannot be read: {error}. Download it again.", option="model"
        ) from error


def converted(file: Path, folder: Path | None = None) -> Path:
    """Return the folder of a GGUF file's model; convert the file if that was not done before.

    Args:
        file: The GGUF file to convert.
        folder: The folder to write; ``None`` writes to ``folder_beside(file)``.

    Raises:
        ConfigurationError: The file cannot be converted, or the folder holds something else.
        MissingExtraError: ``gguf`` or transformers is not installed.
    """
    folder = folder_beside(file) if folder is None else folder
    check_gguf(file)
    source = _source(file)
    if folder.exists():
        found = _read_source(folder)
        if found == source:
            return folder
        what = "the model of another version of this file" if found else "something else"
        raise ConfigurationError(
            f"The GGUF file {file} must be converted, but the folder for the result, {folder}, holds {what}. "
            f"Remove that folder, or convert the file with `rstar2 model get {file} --out FOLDER` and pass FOLDER as "
            "the model.",
            option="model",
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ConfigurationError(
            f"The GGUF file {file} must be converted, but the folder {folder} cannot be written ({error.strerror}). "
            f"Convert it with `rstar2 model get {file} --out FOLDER`, and pass FOLDER as the model.",
            option="model",
        ) from error
    try:
        begin_folder(part, "model")
        with progress(f"converting {file.name} to {folder}"):
            _convert(file, part)
        (part / SOURCE_FILE).write_text(json.dumps(source) + "\n", "utf-8")
        list_files(part, *(name for name in files_in(part) if name != MANIFEST))
        part.chmod(0o755)
        _rename(part, folder, source)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _rename(part: Path, folder: Path, source: dict[str, Any]) -> None:
    try:
        part.rename(folder)
    except OSError:
        if _read_source(folder) != source:  # if it is equal, another process has converted the same file
            raise


def _source(file: Path) -> dict[str, Any]:
    found = file.stat()
    return {"format": "rstar2-env/model-source", "file": file.name, "bytes": found.st_size, "mtime": found.st_mtime_ns}


def _read_source(folder: Path) -> Any:
    try:
        return json.loads((folder / SOURCE_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _convert(file: Path, folder: Path) -> None:
    """Write the dequantized model and its tokenizer; the file's own chat template comes with the tokenizer."""
    _need_packages(file)
    read_gguf(file)  # transformers reads the file without the checks of this function
    import torch

    if not torch.cuda.is_available():
        # If DeepSpeed is installed, transformers imports it, and it would warn that there is no accelerator.
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    transformers: Any = importlib.import_module("transformers")
    named: dict[str, Any] = {"gguf_file": file.name}
    transformers.utils.logging.disable_progress_bar()
    try:
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(str(file.parent), dtype=torch.float32, **named)
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(str(file.parent), **named)
    except Exception as error:  # transformers and gguf raise errors of many classes for files they cannot read
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigurationError(
            f"transformers {transformers.__version__} cannot convert the GGUF file {file}: {reason.rstrip('.')}. "
            "Name a folder in the format of transformers, or a GGUF file of another architecture.",
            option="model",
        ) from error
    # transformers marks the model as quantized, although its weights are plain, and refuses to save such a model.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def _need_packages(file: Path) -> None:
    for package, extra in (("gguf", "gguf"), ("torch", "train"), ("transformers", "train")):
        try:
            __import__(package)
        except ImportError as error:
            raise MissingExtraError(extra, f"The GGUF file {file}") from error
