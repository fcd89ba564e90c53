"""``Target``: the audited grader, as Python source that defines ``grade``, and its own problems, if any."""

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
    """The grader that an audit examines.

    The setup is Python source that defines ``grade(gold, answer, question="")``. The process of the target executes it,
    and every reproduction begins with it. If the audited function has a source file, ``_target`` is that function.

    Attributes:
        name: Name of the target, as the user wrote it.
        kind: Kind of the target, for the report ("a TRL reward function").
        setup: The source of the setup.
        problems: Question and gold answer of the target's own problems; the gold answer is "" if the target does not
            reveal it.
        own_problems: Whether only the target's own problems can be graded.
        versions: Versions of the packages that define the target.
    """

    name: str
    kind: str
    setup: str
    problems: tuple[tuple[str, str], ...] = ()
    own_problems: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)


def asked(name: str, setup: str, expression: str) -> Any:
    """Execute a target's setup in a separate process, and evaluate an expression in the same process.

    Args:
        name: The target, as the user wrote it.
        setup: The source of the setup.
        expression: A Python expression that uses names of the setup.

    Raises:
        ConfigurationError: The setup cannot be executed; the message gives the reason.
    """
    with tempfile.TemporaryDirectory(prefix="rstar2-audit-") as folder, GraderProcess(setup, Path(folder)) as process:
        try:
            return process.ask(expression)
        except TargetError as error:
            raise ConfigurationError(f"The grader {name} cannot be audited: {str(error).rstrip('.')}.") from error
