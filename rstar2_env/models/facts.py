"""``ModelFacts``: the properties of a model in a folder or a GGUF file, read without loading its weights."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.model_name import check_model
from rstar2_env.models.gguf import check_gguf, is_gguf, read_gguf

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Properties of a model.

    Attributes:
        path: The model's folder, or its GGUF file.
        kind: Architecture: ``model_type`` in ``config.json``, or ``general.architecture`` in GGUF.
        parameters: Number of parameters in the stored tensors; tied weights count once.
        bytes: Bytes of the stored tensors.
        precisions: Stored precisions of the tensors, the most frequent first.
        layers: Number of layers; ``None`` if unknown.
        hidden: Width of the residual stream; ``None`` if unknown.
        vocabulary: Number of tokens; ``None`` if unknown.
        context: Longest context in tokens; ``None`` if unknown.
        template: The chat template; ``None`` if there is none.
        base: Name of the model that a LoRA adapter belongs to; ``None`` for a whole model.
    """

    path: str
    kind: str
    parameters: int
    bytes: int
    precisions: tuple[str, ...]
    layers: int | None
    hidden: int | None
    vocabulary: int | None
    context: int | None
    template: str | None
    base: str | None = None

    @property
    def tools(self) -> bool:
        """Whether the chat template has a place for tools."""
        return self.template is not None and "tools" in self.template


def read_facts(path: str | Path) -> ModelFacts:
    """Read the properties of a model; only the headers of its weight files are read.

    Args:
        path: Folder of a model or of a LoRA adapter, or a GGUF file.

    Raises:
        ConfigurationError: There is no such model on this machine, or a file cannot be read.
        MissingExtraError: A GGUF file is named, and ``gguf`` is not installed.
    """
    at = Path(path)
    if is_gguf(at):
        check_gguf(at)
        return _of_gguf(at)
    if not at.is_dir():
        known = "a folder or a GGUF file; `rstar2 model get NAME --out FOLDER` fetches a model"
        raise ConfigurationError(f"There is no model at {path} on this machine: expected {known}.")
    check_model(at)
    return _of_folder(at)


def _of_folder(folder: Path) -> ModelFacts:
    config = _json(folder / "config.json")
    inner = config.get("text_config")
    text: dict[str, Any] = inner if isinstance(inner, dict) else config
    tensors: list[tuple[str, list[int]]] = []
    for file in sorted(folder.glob("*.safetensors")):
        tensors += read_safetensors(file)
    adapter = _json(folder / "adapter_config.json")
    return ModelFacts(
        path=str(folder),
        kind=str(config.get("model_type") or ("LoRA adapter" if adapter else "unknown")),
        parameters=sum(prod(shape) for _, shape in tensors),
        bytes=sum(_WIDTHS.get(kind, 4) * prod(shape) for kind, shape in tensors),
        precisions=_frequent([(kind.lower(), prod(shape)) for kind, shape in tensors]),
        layers=_whole(text, "num_hidden_layers"),
        hidden=_whole(text, "hidden_size"),
        vocabulary=_whole(text, "vocab_size"),
        context=_whole(text, "max_position_embeddings"),
        template=_template(folder),
        base=adapter.get("base_model_name_or_path"),
    )


_WIDTHS = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "I16": 2, "I8": 1, "U8": 1, "F8_E4M3": 1}


_LONGEST_HEADER = 100_000_000
"""Maximum size of a safetensors header in bytes, as in the package ``safetensors``."""
_MOST_DIMENSIONS = 64


def read_safetensors(file: Path) -> list[tuple[str, list[int]]]:
    """Read the precision and the shape of every tensor from the header of a safetensors file.

    The file starts with the length of the header (8 bytes, little endian), then the header, a JSON object.

    Raises:
        ConfigurationError: The file is not a valid safetensors file.
    """
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            size = file.stat().st_size - 8 - length
            if size < 0:
                raise ValueError(f"the header would have {length} bytes, which is more than the file has")
            if length > _LONGEST_HEADER:
                raise ValueError(f"the header has {length} bytes, more than {_LONGEST_HEADER}")
            header = json.loads(stream.read(length))
        return [_tensor(name, entry, size) for name, entry in header.items() if name != "__metadata__"]
    except (OSError, ValueError, AttributeError, RecursionError, struct.error) as error:
        raise ConfigurationError(
            f"The file {file} is not a valid safetensors file: {error}. Download it again."
        ) from error


def _tensor(name: str, entry: Any, size: int) -> tuple[str, list[int]]:
    """Return the precision and the shape of a tensor.

    Args:
        name: The tensor's name.
        entry: The tensor's entry in the header of a safetensors file.
        size: Bytes of the file after the header.

    Raises:
        ValueError: The entry is not valid.
    """
    try:
        kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (begin, end, *shape))
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"the tensor {name[:100]!r} lacks its dtype, its shape or its two data_offsets") from None
    # The product of very many dimensions takes long. An element has at least one bit.
    fits = whole and begin <= end <= size and len(shape) <= _MOST_DIMENSIONS and prod(shape) <= 8 * (end - begin)
    if not (fits and isinstance(kind, str)):
        raise ValueError(f"the shape or the data_offsets of the tensor {name[:100]!r} do not fit the file")
    return kind, shape


def _frequent(counted: list[tuple[str, int]]) -> tuple[str, ...]:
    sums: dict[str, int] = {}
    for kind, count in counted:
        sums[kind] = sums.get(kind, 0) + count
    return tuple(sorted(sums, key=lambda kind: -sums[kind]))


def _template(folder: Path) -> str | None:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text("utf-8")
    found = _json(folder / "tokenizer_config.json").get("chat_template")
    return found if isinstance(found, str) else None


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"The file {file} is not valid JSON: {error}.") from error
    return found if isinstance(found, dict) else {}


def _whole(config: Mapping[str, Any], name: str) -> int | None:
    found = config.get(name)
    return found if type(found) is int else None


def _of_gguf(file: Path) -> ModelFacts:
    reader = read_gguf(file)

    def value(name: str, kind: type[T]) -> T | None:
        field = reader.get_field(name)
        try:
            found = None if field is None else field.contents()
        except ValueError as error:
            raise ConfigurationError(f"The GGUF file {file} cannot be read: {name}: {error}.") from error
        if found is None or isinstance(found, kind):
            return found
        raise ConfigurationError(f"In the GGUF file {file}, {name} has the wrong type: {found!r:.100}.")

    kind = value("general.architecture", str) or "unknown"
    tokens = reader.get_field("tokenizer.ggml.tokens")
    return ModelFacts(
        path=str(file),
        kind=kind,
        parameters=sum(int(tensor.n_elements) for tensor in reader.tensors),
        bytes=sum(int(tensor.n_bytes) for tensor in reader.tensors),
        precisions=_frequent([(tensor.tensor_type.name.lower(), int(tensor.n_elements)) for tensor in reader.tensors]),
        layers=value(f"{kind}.block_count", int),
        hidden=value(f"{kind}.embedding_length", int),
        vocabulary=value(f"{kind}.vocab_size", int) or (None if tokens is None else len(tokens.data)),
        context=value(f"{kind}.context_length", int),
        template=value("tokenizer.chat_template", str),
    )
