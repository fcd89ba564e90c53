"""``Exported``: the description of an environment from which ``rstar2 export --env`` writes a package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Exported:
    """Description of an environment, from which a package is written.

    Attributes:
        env: Name of the environment, as for ``make_env``.
        options: Options of the environment, as JSON values.
        wrappers: Wrappers of the environment, innermost first.
        name: Name of the package, in lower case with underscores.
        specification: Docstring of the environment, its specification for users.
        episodes: Number of problems to write, if the target framework's package contains problems; ``None`` writes all
            problems of a finite source.
    """

    env: str
    options: Mapping[str, Any]
    wrappers: Sequence[Any]
    name: str
    specification: str
    episodes: int | None = None

    @property
    def distribution(self) -> str:
        """Name of the package on a package index such as PyPI."""
        return self.name.replace("_", "-")

    @property
    def title(self) -> str:
        """Name of the package in the style of a class name, such as ``MathTool`` for ``math_tool``."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def summary(self) -> str:
        """The first line of the environment's specification, as the summary of the package."""
        return self.specification.partition("\n")[0] or self.env
