"""The target of an audit: source that defines ``grade``, and the target's own problems if it has any."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.audit.process import GraderProcess, TargetError


@dataclass(frozen=True, slots=True)
class Target:
    """The target of an audit.

    The setup is Python source that defines ``grade(gold, answer, question="")``. The process of the target executes it,
    and every reproduction begins with it. ``_target`` names the audited function, if it has a file.

    Attributes:
        name: As the user wrote it.
        kind: Its kind, for the report ("a TRL reward function").
        setup: The source.
        problems: Question and gold of the target's own problems; a gold may be "" if the target does not tell it.
        own_problems: Whether only the target's own problems can be graded.
        versions: Versions of the packages that the target comes from.
    """

    name: str
    kind: str
    setup: str
    problems: tuple[tuple[str, str], ...] = ()
    own_problems: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)


def asked(name: str, setup: str, expression: str) -> Any:
    """Execute a setup in a process of its own, and return the value of an expression.

    Args:
        name: The target, as the user wrote it.
        setup: The source.
        expression: An expression of the names that it defines.

    Raises:
        ConfigurationError: The setup cannot be executed; the message says why.
    """
    with tempfile.TemporaryDirectory(prefix="rstar2-audit-") as folder, GraderProcess(setup, Path(folder)) as process:
        try:
            return process.ask(expression)
        except TargetError as error:
            raise ConfigurationError(f"{name} cannot be audited: {str(error).rstrip('.')}.") from error
