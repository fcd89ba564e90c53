"""Import ``GRPOTrainer`` without importing vLLM.

If vLLM is installed, TRL imports it together with ``GRPOTrainer``, for TRL's own generation. That costs as much time as
the rest of the import and changes settings of torch. This package never generates through TRL, so the module that
imports vLLM is loaded only if a program makes TRL's ``VLLMGeneration``.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType
from typing import Any

_MODULE = "trl.generation.vllm_generation"


def _make_vllm_generation(*args: Any, **kwargs: Any) -> Any:
    """Make TRL's ``VLLMGeneration``, and import vLLM for it."""
    return importlib.import_module(_MODULE).VLLMGeneration(*args, **kwargs)


with warnings.catch_warnings():
    # TRL warns about every vLLM version that it does not support; this package never uses vLLM through TRL.
    warnings.filterwarnings("ignore", message="TRL currently supports vLLM")
    _delayed = _MODULE not in sys.modules
    if _delayed:
        sys.modules[_MODULE] = ModuleType(_MODULE)
        sys.modules[_MODULE].__dict__["VLLMGeneration"] = _make_vllm_generation
    try:
        from trl import GRPOTrainer
    finally:
        if _delayed:
            del sys.modules[_MODULE]

__all__ = ["GRPOTrainer"]
