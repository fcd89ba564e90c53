"""The registry of procedural problem families.

A family is a function that takes ``split``, ``seed`` and its own options, and returns a source. A module of
this package adds one with ``families.register``; another distribution does so through the entry-point group
``rstar2_env.problems``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rstar2_env.core.options.registry import Registry
from rstar2_env.problems.source import ProblemSource

ProblemFamily: TypeAlias = Callable[..., ProblemSource]
"""Function that returns a source of problems, called with ``split``, ``seed`` and the family's own options by name.

It raises ``ConfigurationError`` for an unknown split or an invalid value.
"""

FAMILIES: Registry[ProblemFamily] = Registry("problem family", "rstar2_env.problems", "rstar2_env.problems")
