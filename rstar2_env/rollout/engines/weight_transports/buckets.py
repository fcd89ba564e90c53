"""Packs weights into buckets of bounded size, so that a weight sync needs the memory of one bucket, not of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor


@dataclass
class Bucket:
    """Some tensors in one buffer.

    Attributes:
        data: Bytes of the tensors, one after the other, shape (bytes,); the buffer is reused for the next bucket.
        names: Names of the tensors.
        dtypes: Precisions of the tensors.
        shapes: Shapes of the tensors.
    """

    data: Tensor
    names: list[str] = field(default_factory=list)
    dtypes: list[torch.dtype] = field(default_factory=list)
    shapes: list[list[int]] = field(default_factory=list)

    def add(self, name: str, tensor: Tensor) -> None:
        """Record the name, precision and shape of a tensor whose bytes are in the buffer."""
        self.names.append(name)
        self.dtypes.append(tensor.dtype)
        self.shapes.append(list(tensor.shape))


def buckets(
    weights: Iterable[tuple[str, Tensor]], most_bytes: int, device: torch.device | None = None
) -> Iterator[Bucket]:
    """Pack weights into buckets of limited size, one after the other in the same buffer.

    A tensor that is larger than a bucket gets its own bucket, without a copy if possible.

    Args:
        weights: Names and tensors; a tensor may become invalid when the next one is requested.
        most_bytes: Maximum size of a bucket in bytes, except for a larger tensor.
        device: Device of the buffer; ``None`` means the device of the first tensor.

    Yields:
        The buckets, in order; a bucket becomes invalid when the next one is requested.
    """
    buffer: Tensor | None = None
    bucket, used = None, 0
    for name, tensor in weights:
        tensor = tensor.detach()
        where = device or tensor.device
        # A view of the bytes as numbers must start at a multiple of the numbers' size.
        if bucket is not None and (used + tensor.nbytes > most_bytes or used % tensor.itemsize):
            bucket.data = bucket.data[:used]
            yield bucket
            bucket, used = None, 0
        if tensor.nbytes > most_bytes:
            large = Bucket(tensor.to(where).contiguous().view(-1).view(torch.uint8))
            large.add(name, tensor)
            yield large
            continue
        if bucket is None:
            buffer = torch.empty(most_bytes, dtype=torch.uint8, device=where) if buffer is None else buffer
            bucket = Bucket(buffer)
        part = bucket.data[used : used + tensor.nbytes]
        part.view(tensor.dtype).view(tensor.shape).copy_(tensor)
        bucket.add(name, tensor)
        used += tensor.nbytes
    if bucket is not None:
        bucket.data = bucket.data[:used]
        yield bucket


def writing(
    weights: Iterable[tuple[str, Tensor]], folder: Path, *, bucket_bytes: int = 256 << 20
) -> Iterator[tuple[str, Tensor]]:
    """Yield weights unchanged, and also write them to a folder as safetensors files.

    Args:
        weights: Names and tensors; a tensor may become invalid when the next one is requested.
        folder: Folder of the files; created if it does not exist.
        bucket_bytes: Maximum number of bytes in a file, except for a larger tensor.

    Yields:
        The names and tensors of ``weights``, unchanged.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    held: dict[str, Tensor] = {}
    size = number = 0
    for name, tensor in weights:
        if held and size + tensor.nbytes > bucket_bytes:
            save_file(held, str(folder / f"model-{number:05d}.safetensors"))
            held, size, number = {}, 0, number + 1
        if tensor.nbytes > bucket_bytes:
            save_file({name: tensor.detach().contiguous()}, str(folder / f"model-{number:05d}.safetensors"))
            number += 1
        else:
            # A copy, since the next item may reuse the tensor. Tied weights are written under each of their names: vLLM
            # on a CPU keeps a packed copy of the second one, and would continue with the old weights (seen with 0.32).
            held[name] = torch.empty_like(tensor, device="cpu", memory_format=torch.contiguous_format).copy_(tensor)
            size += tensor.nbytes
        yield name, tensor
    if held:
        save_file(held, str(folder / f"model-{number:05d}.safetensors"))
