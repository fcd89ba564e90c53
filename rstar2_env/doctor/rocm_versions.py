"""Versions of ROCm, torch and vLLM in documents, container images and checks.

This module is their only source; a test compares README.md, the Makefile, the images, the compose file and the
documents with it. None of these versions was run on an AMD GPU for this project; they are the versions that the
publishers ship.
"""

from __future__ import annotations

ROCM_INDEX = "7.2"
"""ROCm version of the torch wheels in README.md and the Makefile."""

TORCH = "2.13.0"
"""Version of the torch wheels in README.md and the Makefile: ``torch==2.13.0+rocm7.2`` on download.pytorch.org."""

TORCH_INDEX = f"https://download.pytorch.org/whl/rocm{ROCM_INDEX}"
"""Index of torch's ROCm wheels for pip."""

VLLM = "0.31.0"
"""Version of vLLM's ROCm image; the tests run the CPU builds of 0.31 and 0.32."""

VLLM_LEAST = "0.22"
"""Lowest vLLM version that the engines support."""

VLLM_BELOW = "0.33"
"""Lowest vLLM version that was not tested; the extra ``vllm`` requires a lower version."""

VLLM_IMAGE = f"vllm/vllm-openai-rocm:v{VLLM}"
"""vLLM's container image for ROCm, with torch, RCCL and AITER."""

VLLM_WHEEL_PYTHON = "3.12"
"""The only Python version for which vLLM publishes ROCm wheels; with others, pip silently installs the CUDA wheel."""

VLLM_WHEEL_INDEX = "https://wheels.vllm.ai/rocm/"
"""Package index of vLLM's ROCm wheels."""

VLLM_WHEEL_GLIBC = "2.35"
"""Oldest glibc that vLLM's ROCm wheels support."""

ARCHITECTURES = {
    "gfx90a": ("MI200", "6.3"),
    "gfx942": ("MI300", "6.3"),
    "gfx950": ("MI350", "7.0"),
}
"""For each architecture, the series of Instinct accelerators, and the oldest ROCm version with which vLLM supports them
(docs.vllm.ai, installation on ROCm)."""

AITER_ARCHITECTURES = ("gfx942", "gfx950")
"""Architectures with AITER kernels in vLLM's image."""

FULL_MEMORY_GB = {"MI300X": 192, "MI325X": 256, "MI350X": 288, "MI355X": 288}
"""Memory of a whole accelerator, in GB of 10**9 bytes (AMD's data sheets); a partition reports less."""
