"""The parts ``kernels`` and ``speed``: check that a device computes correctly, and measure its speed."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from .findings import PartFinding, ProofFigure, judged
from .scale import device, known_device, precision, scale

_LIMITS = {torch.float32: 2e-3, torch.bfloat16: 2e-2}
"""Largest allowed relative error of a kernel, by the precision of its inputs. The limit for float32 allows for TF32."""


def kernels(model: str | None) -> PartFinding:
    """Compare the device's matrix products, attention, normalization and log-softmax with float64 on the CPU.

    ``model`` is not used.
    """
    own, figures = device(), []
    generator = torch.Generator().manual_seed(0)
    for dtype in {torch.float32, precision()}:
        for name, function, shapes in _KERNELS:
            inputs = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
            exact = function(*(one.double() for one in inputs))
            found = function(*(one.to(own) for one in inputs)).double().cpu()
            error = float((found - exact).norm() / exact.norm())
            kind = str(dtype).removeprefix("torch.")
            figures.append(
                ProofFigure(f"relative error of {name} in {kind}", error, None, _LIMITS[dtype], "float64", must=True)
            )
    return judged("kernels", f"on {own}, compared with float64 on the CPU", figures)


def _attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)


_KERNELS: tuple[tuple[str, Callable[..., Tensor], tuple[tuple[int, ...], ...]], ...] = (
    ("a matrix product", torch.matmul, ((192, 256), (256, 320))),
    ("causal attention", _attention, ((1, 4, 96, 64), (1, 2, 96, 64), (1, 2, 96, 64))),
    ("a normalization", lambda x, w: functional.rms_norm(x, (256,), w, 1e-6), ((64, 256), (256,))),
    ("a log-softmax", lambda x: x.log_softmax(-1), ((64, 1024),)),
)


def speed(model: str | None) -> PartFinding:
    """Measure the speed of matrix products and copies; the device's data sheet gives the expected range.

    ``model`` is not used.
    """
    own, sizes, sheet = device(), scale(), known_device()
    left = torch.randn(sizes.side, sizes.side, device=own, dtype=precision())
    seconds = _fastest(lambda: left @ left)
    operations = 2 * sizes.side**3 / seconds
    block = torch.empty(sizes.megabytes << 20, dtype=torch.uint8, device=own)
    other = torch.empty_like(block)
    copied = 2 * block.nbytes / _fastest(lambda: other.copy_(block))
    peak = sheet.operations if sheet is not None else None
    bandwidth = sheet.bandwidth if sheet is not None else None
    figures = [
        _figure("matrix products, 10¹² operations per second", operations / 1e12, peak and peak / 1e12, 0.4),
        _figure("copies in the device's memory, GB per second", copied / 1e9, bandwidth and bandwidth / 1e9, 0.5),
    ]
    return judged("speed", "the fastest of several", figures)


def _figure(name: str, value: float, peak: float | None, share: float) -> ProofFigure:
    if peak is None:
        return ProofFigure(name, value)
    return ProofFigure(name, value, share * peak, peak, f"{share:.0%} to 100% of the data sheet")


def _fastest(work: Callable[[], object], times: int = 10) -> float:
    best = float("inf")
    for _ in range(times):
        synchronize()
        began = time.perf_counter()
        work()
        synchronize()
        best = min(best, time.perf_counter() - began)
    return best


def synchronize() -> None:
    """Wait until the device has finished its operations."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
