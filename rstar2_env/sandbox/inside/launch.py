"""Starts one of the sandbox's programs in a fresh interpreter: ``python launch.py warden`` or ``zygote``.

The interpreter runs in isolated mode, so this folder is not on its path. A stub package lets the modules of this folder
import one another without importing the enclosing package, which would import Gymnasium.
"""

from __future__ import annotations

import importlib
import os
import sys
import types

PACKAGE = "rstar2_sandbox"


def main(program: str) -> None:
    """Import ``program`` from this folder and run its ``main``."""
    package = types.ModuleType(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[PACKAGE] = package
    importlib.import_module(f"{PACKAGE}.{program}.main").main()


if __name__ == "__main__":
    main(sys.argv[1])
