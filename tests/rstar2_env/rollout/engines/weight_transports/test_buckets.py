"""Buckets hold every weight once, none is larger than asked for, and files of them can be read."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rstar2_env.rollout.engines.weight_transports.buckets import buckets, writing


def weights() -> dict[str, torch.Tensor]:
    """Tensors of several precisions and layouts, of which one is larger than a bucket."""
    many = {f"w{number}": torch.full((10, 10), float(number)).t() for number in range(7)}
    odd = {"odd": torch.arange(3, dtype=torch.bfloat16), "after": torch.arange(4, dtype=torch.float32)}
    return {**many, **odd, "large": torch.arange(1000.0).view(10, 100).t(), "last": torch.tensor(3.0)}


def reused(tensors: dict[str, torch.Tensor]):
    """The weights as a walk gives them: each is overwritten once the next one is asked for."""
    for name, tensor in tensors.items():
        given = tensor.clone(memory_format=torch.preserve_format)
        yield name, given
        given.fill_(float("nan"))


def test_what_is_read_from_buckets_is_what_went_in() -> None:
    expected, found, sizes = weights(), {}, []
    for bucket in buckets(reused(expected), 900):
        sizes.append(len(bucket.data))
        parts = [
            dtype.itemsize * torch.Size(shape).numel()
            for dtype, shape in zip(bucket.dtypes, bucket.shapes, strict=True)
        ]
        assert sum(parts) == len(bucket.data)
        for name, dtype, shape, part in zip(
            bucket.names, bucket.dtypes, bucket.shapes, bucket.data.split(parts), strict=True
        ):
            # As vLLM reads it: bytes are numbers only from a multiple of their size on.
            found[name] = part.view(dtype).view(shape).clone()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    assert sorted(size > 900 for size in sizes) == [False] * (len(sizes) - 1) + [True], "the large one alone"
    assert len(sizes) > 4


def test_one_buffer_serves_all_buckets() -> None:
    places = {bucket.data.data_ptr() for bucket in buckets(((str(n), torch.ones(50)) for n in range(20)), 450)}
    assert len(places) == 1


@pytest.mark.parametrize("most", [900, 10**9])
def test_files_hold_every_weight_and_none_is_lost(tmp_path: Path, most: int) -> None:
    expected = weights()
    passed = [name for name, _ in writing(reused(expected), tmp_path / "new" / "folder", bucket_bytes=most)]
    assert passed == list(expected)
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert len(files) == 1 if most > 10**6 else len(files) > 3
    found = {name: tensor for file in files for name, tensor in load_file(file).items()}
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
