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
"""Called with ``split``, ``seed`` and the family's own options, all by name; raises ``ConfigurationError`` for a
split or a value that the family does not have."""

FAMILIES: Registry[ProblemFamily] = Registry("problem family", "rstar2_env.problems", "rstar2_env.problems")
