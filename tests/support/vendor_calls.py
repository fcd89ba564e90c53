"""Finds calls that work on one vendor's accelerators only, in code that is to run on ROCm, CUDA and the CPU alike.

torch's ROCm build answers to ``torch.cuda``, but not to all of it. Covered: what is reached through ``torch.cuda``,
``torch.backends.cuda`` and ``torch.version``, imports of one vendor's packages, one vendor's tools and devices in
texts. Not covered: what other packages call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

EVERYWHERE = frozenset(
    {
        "Event",
        "current_device",
        "current_stream",
        "device_count",
        "empty_cache",
        "get_arch_list",
        "get_device_name",
        "get_device_properties",
        "is_available",
        "is_bf16_supported",
        "is_initialized",
        "manual_seed_all",
        "max_memory_allocated",
        "mem_get_info",
        "memory_allocated",
        "memory_reserved",
        "reset_peak_memory_stats",
        "set_device",
        "synchronize",
    }
)
"""Names of ``torch.cuda`` that mean the same with a ROCm build. Not among them: ``get_device_capability``, whose
numbers are those of gfx names there, ``nvtx``, ``cudart`` and others."""

FOREIGN = frozenset(
    {
        "apex",
        "bitsandbytes",
        "cupy",
        "cuda",
        "flash_attn",
        "flashinfer",
        "nvidia",
        "pycuda",
        "pynvml",
        "tensorrt",
        "transformer_engine",
        "xformers",
    }
)
"""Packages that exist, or are built, for one vendor."""

_TEXTS = re.compile(r"nvidia-smi|libcuda|libcudart|/dev/nvidia|rocm-smi|libamdhip|/dev/kfd|CUDA_VISIBLE_DEVICES")


def vendor_calls(source: str) -> Iterator[tuple[int, str]]:
    """Line and description of everything in a module that is one vendor's."""
    tree = ast.parse(source)
    # A text that stands alone documents what is above or below it.
    documents = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Attribute):
            name = _dotted(node)
            of_cuda = re.fullmatch(r"torch\.cuda\.\w+", name) and node.attr not in EVERYWHERE
            if of_cuda or name in ("torch.backends.cuda", "torch.backends.cudnn", "torch.version.cuda"):
                yield line, name
        elif isinstance(node, ast.Import):
            yield from ((line, f"import {one.name}") for one in node.names if one.name.split(".")[0] in FOREIGN)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            if node.module.split(".")[0] in FOREIGN:
                yield line, f"from {node.module}"
            elif node.module == "torch.cuda":
                yield from ((line, f"torch.cuda.{one.name}") for one in node.names if one.name not in EVERYWHERE)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield from ((line, found[0]) for found in _TEXTS.finditer(node.value))


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
