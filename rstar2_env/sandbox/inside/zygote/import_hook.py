"""``AfterImport``: an import hook that changes modules right after a program has imported them."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


class AfterImport:
    """An import hook that calls a function for each of the given modules, once, after the module was loaded.

    Args:
        purpose: Name of the hook; it replaces an installed hook of the same name.
        actions: The function to call for each module, by the module's name. Modules that are loaded already are
            ignored.
    """

    def __init__(self, purpose: str, actions: dict[str, Callable[[ModuleType], object]]) -> None:
        self.purpose = purpose
        self._actions = {name: action for name, action in actions.items() if name not in sys.modules}

    def install(self) -> None:
        """Install the hook in the interpreter, unless all modules are already loaded."""
        sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "purpose", None) != self.purpose]
        if self._actions:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module in ``actions``; ``None`` for any other module.

        The loader of this spec calls the module's function after it has loaded the module.
        """
        action = self._actions.pop(name, None)
        if action is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_act(module: ModuleType) -> None:
                load(module)
                action(module)

            spec.loader.exec_module = load_and_act  # type: ignore[method-assign]  # changes only this loader
        return spec
