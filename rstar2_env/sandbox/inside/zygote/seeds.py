"""Seeds random generators, so that every call starts from the seed of its job and can be replayed exactly.

Covered: ``random``, and the global generators of ``numpy.random`` and ``sympy``, whether these modules are loaded by
the parent or imported later by the program. Not covered: generators that a program creates without a seed
(``numpy.random.default_rng()``, ``secrets``), which use randomness of the kernel.
"""

from __future__ import annotations

import random
import sys
from types import ModuleType
from typing import Any

from .import_hook import AfterImport

_SEEDED = ("numpy.random", "sympy.core.random")


_current = [0]
"""List whose only element is the seed for the generators of modules that are imported later."""
_generator: Any = random._inst  # the generator behind the functions of ``random``
_seed_random = super(random.Random, _generator).seed


def watch_imports() -> None:
    """Install a hook that seeds a module's random generator after the import; called once in the parent process."""
    AfterImport("seeds", dict.fromkeys(_SEEDED, _seed_later)).install()


def seed_everything(seed: int) -> None:
    """Seed the random generators of loaded modules, and of modules imported later (see ``watch_imports``)."""
    _seed_random(seed)
    if _generator.gauss_next is not None:  # from an earlier cell; `random.seed` itself would copy more pages
        _generator.gauss_next = None
    for name in _SEEDED:
        if name in sys.modules:
            _seed(seed, sys.modules[name])
    _current[0] = seed


def _seed_later(module: ModuleType) -> None:
    _seed(_current[0], module)


def _seed(seed: int, module: ModuleType) -> None:
    # A different seed for each module, so that generators of one kind draw different numbers (Fibonacci hashing).
    mixed = (seed + 1 + _SEEDED.index(module.__name__)) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    module.seed(mixed >> 32)
