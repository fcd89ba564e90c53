"""The versions of ROCm, torch and vLLM that this package names: in its documents, its images and its checks.

This is the one place that holds them; a test compares README.md, the Makefile, the images, the compose file and the
documents with it. None of them was run by us on an AMD GPU: the sources say what their publishers ship.
"""

from __future__ import annotations

import re

ROCM_INDEX = "7.2"
"""ROCm version of the wheels of torch that README.md and the Makefile name."""

TORCH = "2.13.0"
"""Version of torch that they name; with ``ROCM_INDEX``, ``torch==2.13.0+rocm7.2`` on download.pytorch.org."""

TORCH_INDEX = f"https://download.pytorch.org/whl/rocm{ROCM_INDEX}"
"""Where pip finds torch's own wheels for ROCm."""

VLLM = "0.31.0"
"""Version of vLLM whose ROCm image is named; the tests here run against the CPU's build of 0.31 and 0.32."""

VLLM_LEAST = "0.22"
"""Oldest vLLM that the engines work with."""

VLLM_IMAGE = f"vllm/vllm-openai-rocm:v{VLLM}"
"""vLLM's own image for ROCm, with its torch, RCCL and AITER in it."""

VLLM_WHEEL_PYTHON = "3.12"
"""The one Python for which vLLM publishes ROCm wheels; on others pip falls back to the CUDA wheel without a word."""

VLLM_WHEEL_INDEX = "https://wheels.vllm.ai/rocm/"
"""Where they are."""

VLLM_WHEEL_GLIBC = "2.35"
"""Oldest C library that they run on."""

ARCHITECTURES = {
    "gfx90a": ("MI200", "6.3"),
    "gfx942": ("MI300", "6.3"),
    "gfx950": ("MI350", "7.0"),
}
"""Instinct accelerators by architecture: their series, and the oldest ROCm that vLLM supports them with
(docs.vllm.ai, installation on ROCm)."""

AITER_ARCHITECTURES = ("gfx942", "gfx950")
"""Architectures that vLLM's image has AITER's kernels for."""

FULL_MEMORY_GB = {"MI300X": 192, "MI325X": 256, "MI350X": 288, "MI355X": 288}
"""Memory of one whole accelerator, in GB of 10**9 bytes (AMD's data sheets); a partition of one shows less."""


def at_least(version: str, least: str) -> bool:
    """Whether a version such as ``"7.2.1"`` or ``"0.31.0+rocm721"`` is this one or newer; ``False`` if it is none."""
    found = _numbers(version)
    return bool(found) and found >= _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    matched = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, matched[0].split("."))) if matched else ()
