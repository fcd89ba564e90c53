"""A fixture that imports programs from the folder benchmarks, which is not a package."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest
from places import BENCHMARKS


@pytest.fixture(scope="session")
def benchmark_named() -> Callable[[str], ModuleType]:
    """Return a function that imports a program from the folder benchmarks, which is not a package."""

    def imported(name: str) -> ModuleType:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(BENCHMARKS))
            return importlib.import_module(name)

    return imported
