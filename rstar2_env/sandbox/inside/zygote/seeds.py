"""Random states: every call starts from the seed of its job, so that it replays exactly.

Covered: ``random``, and the global generators of ``numpy.random`` and ``sympy``, loaded by the parent or imported later
by the program. Not covered: generators that a program creates without a seed (``numpy.random.default_rng()``,
``secrets``), which use randomness of the kernel.
"""

from __future__ import annotations

import random
import sys
from functools import partial
from types import ModuleType

from .import_hook import AfterImport

_SEEDED = ("numpy.random", "sympy.core.random")


def seed_everything(seed: int) -> None:
    """Seed the loaded generators, and seed others when they are imported."""
    random.seed(seed)
    for name in _SEEDED:
        if name in sys.modules:
            _seed(seed, sys.modules[name])
    AfterImport("seeds", dict.fromkeys(_SEEDED, partial(_seed, seed))).install()


def _seed(seed: int, module: ModuleType) -> None:
    # A different seed for each module, so that generators of one kind draw different numbers (Fibonacci hashing).
    mixed = (seed + 1 + _SEEDED.index(module.__name__)) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    module.seed(mixed >> 32)
