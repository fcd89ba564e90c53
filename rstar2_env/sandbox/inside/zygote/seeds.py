"""Random states: every call starts from the seed of its job, so that it replays exactly.

Covered: ``random``, and the global generators of ``numpy.random`` and ``sympy``, loaded by the parent or imported later
by the program. Not covered: generators that a program creates without a seed (``numpy.random.default_rng()``,
``secrets``), which use randomness of the kernel.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import random
import sys
from collections.abc import Sequence
from types import ModuleType

_SEEDED = ("numpy.random", "sympy.core.random")


def seed_everything(seed: int) -> None:
    """Seed the loaded generators, and seed others when they are imported."""
    random.seed(seed)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _SeedOnImport)]
    later = {name for name in _SEEDED if name not in sys.modules}
    for name in _SEEDED:
        if name not in later:
            _seed(sys.modules[name], seed)
    if later:
        sys.meta_path.insert(0, _SeedOnImport(later, seed))


def _seed(module: ModuleType, seed: int) -> None:
    # A different seed for each module, so that generators of one kind draw different numbers (Fibonacci hashing).
    mixed = (seed + 1 + _SEEDED.index(module.__name__)) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    module.seed(mixed >> 32)


class _SeedOnImport:
    """Import hook that seeds a module after loading it."""

    def __init__(self, names: set[str], seed: int) -> None:
        self._names = names
        self._seed = seed

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module to seed, with a loader that seeds it; ``None`` for other modules."""
        if name not in self._names:
            return None
        self._names.discard(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_seed(module: ModuleType) -> None:
                load(module)
                _seed(module, self._seed)

            spec.loader.exec_module = load_and_seed  # type: ignore[method-assign]  # changes only this loader
        return spec
